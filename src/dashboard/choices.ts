import { listKeys } from '../accounts/keys.ts';
import { account_endpoint } from './page.ts';

export type Choices = { models: { id: string; name: string }[]; keys: { id: string; name: string }[] };

/** What there is to choose from in the filters of lists: models by their ids, keys by their names. */
export const get_choices = account_endpoint('GET', '/choices', 'read', async (app, { account }) => {
  const models = [...app.catalog.current.models.values()].map(({ id }) => ({ id, name: id }));
  const keys = (await listKeys(app.db, account.id)).map(({ id, name, deleted_at }) => {
    return { id, name: deleted_at === null ? name : `${name} (deleted)` };
  });
  const choices: Choices = { models, keys };
  return { status: 200, body: choices };
});
