import { keyState, listKeys } from '../accounts/keys.ts';
import { projectNames } from '../accounts/projects.ts';
import { account_endpoint } from './page.ts';

export type Choices = {
  models: { id: string; name: string }[];
  keys: { id: string; name: string }[];
  projects: { id: string; name: string }[];
};

/** Choices for the filters of lists: models by id, keys by name. */
export const get_choices = account_endpoint('GET', '/choices', 'read', async (app, { account }) => {
  const models = [...app.catalog.current.models.values()].map(({ id }) => ({ id, name: id }));
  const keys = (await listKeys(app.db, account.id)).map((key) => {
    const { id, name } = key;
    const state = keyState(key, app.clock.now());
    return { id, name: state === 'active' ? name : `${name} (${state})` };
  });
  const projects = [...(await projectNames(app.db, account.id))].map(([id, name]) => ({ id, name }));
  const choices: Choices = { models, keys, projects };
  return { status: 200, body: choices };
});
