import { setLanguage } from '../accounts/language.ts';
import { readBodyFields } from './body-fields.ts';
import { session_endpoint } from './page.ts';
import { builtLanguages } from './web.ts';

/** Sets the language of the dashboard for the person who has signed in; null follows the browser. */
export const set_language = session_endpoint('PUT', '/dash/me/language', 'signed in', async ({ db }, call) => {
  const language =
    call.body?.['language'] === null ? null : readBodyFields(call.body).oneOf('language', builtLanguages());
  await setLanguage(db, call.person.user.id, language);
  return { status: 200, body: { ok: true } };
});
