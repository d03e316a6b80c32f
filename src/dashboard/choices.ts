import { keyState, listKeys } from '../accounts/keys.ts';
import { projectNames } from '../accounts/projects.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { Answer } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { seesKey, seesProject } from './project-scope.ts';

/** The parts of the app that choices take. */
type Parts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

export type Choices = {
  models: { id: string; name: string }[];
  keys: { id: string; name: string }[];
  projects: { id: string; name: string }[];
};

/** Choices for the filters of lists: models by id, keys by name. */
export const get_choices = account_endpoint('GET', '/choices', 'read', readChoices, { limited: 'own' });

async function readChoices(app: Parts, { account, scope }: AccountCall): Promise<Answer> {
  const models = [...app.catalog.current.models.values()].map(({ id }) => ({ id, name: id }));
  const seen = (await listKeys(app.db, account.id)).filter(({ id }) => seesKey(scope, id));
  const keys = seen.map((key) => {
    const { id, name } = key;
    const state = keyState(key, app.clock.now());
    return { id, name: state === 'active' ? name : `${name} (${state})` };
  });
  const names = [...(await projectNames(app.db, account.id))];
  const projects = names.filter(([id]) => seesProject(scope, id)).map(([id, name]) => ({ id, name }));
  const choices: Choices = { models, keys, projects };
  return { status: 200, body: choices };
}
