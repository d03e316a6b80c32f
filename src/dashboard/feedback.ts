import { listMembers } from '../accounts/team.ts';
import { beginOf, tooMany } from '../api/feedback.ts';
import { findRecord } from '../chat/record.ts';
import type { Db, Queryable } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import { default_metric, giveFeedback, listFeedback, removeFeedback, scores_max } from '../feedback/feedback.ts';
import type { Answer } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { loadTask } from '../tasks/task.ts';
import { readBodyFields } from './body-fields.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { seesKey } from '../accounts/project-scope.ts';
import type { FeedbackView } from './views/activity.ts';

/** The parts of the app that giving feedback takes. */
type Parts = { readonly db: Db; readonly clock: Clock };

const reference_max = 64;

/** Gives a thumb up or down to a call or a task, or takes one's own away again: a score of 1, -1 or 0. */
export const set_feedback = account_endpoint('POST', '/feedback', 'run', giveOrTake, { limited: 'own' });

async function giveOrTake({ db, clock }: Parts, call: AccountCall): Promise<Answer> {
  const { account, person, scope, gone, draining } = call;
  const reference_id = readBodyFields(call.body).text('reference_id', reference_max);
  const score = readBodyFields(call.body).oneOf('score', [1, -1, 0]);
  const about = { account_id: account.id, reference_id };
  await checkSight(db, call, reference_id);
  if (score === 0) {
    const own = (await feedbackOf(db, account.id, reference_id, person.user.id)).filter(({ is_own }) => is_own);
    for (const { id } of own) await removeFeedback(db, { account_id: account.id, id });
  } else {
    const sees = (key_id: string) => seesKey(db, scope, key_id);
    const referred_at = await beginOf({ db, clock }, { ...about, sees }, AbortSignal.any([gone, draining]));
    const more = { name: default_metric, comment: null, tags: [], metadata: {}, key_id: null };
    const row = { ...about, ...more, referred_at, end_user: person.user.id, score };
    if (!(await giveFeedback(db, row, new Date(clock.now())))) throw tooMany();
  }
  return { status: 200, body: { feedback: await feedbackOf(db, account.id, reference_id, person.user.id) } };
}

/** Throws ApiError 404 for a call or a task that is out of sight. */
async function checkSight(db: Db, { account, scope }: AccountCall, id: string): Promise<void> {
  if (!scope) return;
  const task = isId('task', id) ? await loadTask(db, { account_id: account.id, task_id: id }) : undefined;
  const referred = task ?? (isId('req', id) ? await findRecord(db, account.id, id) : undefined);
  if (referred && (await seesKey(db, scope, referred.key_id))) return;
  throw new ApiError('not_found', 'There is no such call or task.', { param: 'reference_id' });
}

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
