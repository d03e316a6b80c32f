import { listMembers } from '../accounts/team.ts';
import { beginOf, tooMany } from '../api/feedback.ts';
import type { Queryable } from '../db/database.ts';
import { default_metric, giveFeedback, listFeedback, removeFeedback, scores_max } from '../feedback/feedback.ts';
import { isId } from '../lib/ids.ts';
import { readBodyFields } from './body-fields.ts';
import { account_endpoint } from './page.ts';
import type { FeedbackView } from './views/activity.ts';

const reference_max = 64;

/** Gives a thumb up or down to a call or a task, or takes one's own away again: a score of 1, -1 or 0. */
export const set_feedback = account_endpoint('POST', '/feedback', 'run', async ({ db, clock }, call) => {
  const { account, person, gone, draining } = call;
  const reference_id = readBodyFields(call.body).text('reference_id', reference_max);
  const score = readBodyFields(call.body).oneOf('score', [1, -1, 0]);
  const about = { account_id: account.id, reference_id };
  if (score === 0) {
    const own = (await feedbackOf(db, account.id, reference_id, person.user.id)).filter(({ is_own }) => is_own);
    for (const { id } of own) await removeFeedback(db, account.id, id);
  } else {
    const referred_at = await beginOf({ db, clock }, about, AbortSignal.any([gone, draining]));
    const more = { name: default_metric, comment: null, tags: [], metadata: {}, key_id: null };
    const row = { ...about, ...more, referred_at, end_user: person.user.id, score };
    if (!(await giveFeedback(db, row, new Date(clock.now())))) throw tooMany();
  }
  return { status: 200, body: { feedback: await feedbackOf(db, account.id, reference_id, person.user.id) } };
});

/** The scores of a call or a task, as somebody of its account sees them: those of members with their names. */
export async function feedbackOf(
  db: Queryable,
  account_id: string,
  reference_id: string,
  user_id: string,
): Promise<FeedbackView[]> {
  const { feedback } = await listFeedback(db, { account_id, reference_id, limit: scores_max });
  const has_people = feedback.some(({ end_user }) => end_user !== user_id && isId('user', end_user));
  const members = has_people ? await listMembers(db, account_id) : [];
  const nameOf = (end_user: string) => members.find((member) => member.user_id === end_user)?.name || end_user;
  return feedback.map(({ id, name, end_user, score, comment, tags, created_at }) => ({
    id,
    name,
    user: end_user === '' ? null : nameOf(end_user),
    score,
    comment,
    tags,
    created_at: created_at.toISOString(),
    is_own: end_user === user_id && name === default_metric,
  }));
}
