import { endOtherSessions, endSession, listSessions } from '../../accounts/sign-in/sessions.ts';
import { ApiError } from '../../errors.ts';
import { auditAction } from '../audit-action.ts';
import { session_endpoint } from '../page.ts';
import { tellByMail } from './security-mail.ts';
import type { SessionView } from '../views/settings.ts';

/** Lists the sessions of this person. */
export const list_sessions = session_endpoint('GET', '/dash/sessions', 'signed in', async (app, { person }) => {
  const sessions = await listSessions(app.db, person.user.id, new Date(app.clock.now()));
  const data = sessions.map(({ id, created_at, updated_at, address, user_agent }): SessionView => {
    const [created, used] = [created_at.toISOString(), updated_at.toISOString()];
    return { id, created_at: created, used_at: used, address, user_agent, is_this: id === person.session_id };
  });
  return { status: 200, body: { data } };
});

/** Signs one of them out; the next thing that it asks is refused. */
export const end_session = session_endpoint('DELETE', '/dash/sessions/{id}', 'signed in', async (app, call) => {
  const { person, params } = call;
  const { id = '' } = params;
  if (id.includes('\0') || !(await endSession(app.db, person.user.id, id))) {
    throw new ApiError('not_found', 'There is no such session.');
  }
  await auditAction(app, call, 'session.end', person.user.id);
  return { status: 200, body: { ok: true } };
});

/** Signs out everywhere but here; browsers that were asked for no code are asked again. */
export const end_other_sessions = session_endpoint(
  'POST',
  '/dash/sessions/end-others',
  'signed in',
  async (app, call) => {
    const { user, session_id } = call.person;
    const ended = await endOtherSessions(app.db, user.id, session_id);
    const subject = 'You were signed out of Medley everywhere else';
    tellByMail(app, user, { subject, now: new Date(app.clock.now()), address: call.address });
    await auditAction(app, call, 'session.end_others', user.id, { ended });
    return { status: 200, body: { ended } };
  },
);
