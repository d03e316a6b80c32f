import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { countKeys } from '../accounts/key-list.ts';
import { archiveProject, createProject, default_project, listProjects, renameProject } from '../accounts/projects.ts';
import { ApiError, invalidField } from '../errors.ts';
import type { Answer } from '../http/endpoint.ts';
import { costView } from '../money/money.ts';
import { usageOf } from '../money/usage.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { seesProject } from '../accounts/project-scope.ts';
import type { ProjectsView, ProjectView } from './views/keys.ts';

/** The parts of the app that projects take. */
type Parts = { readonly db: Db; readonly clock: Clock };

const name_length_max = 100;

/** The account's projects, the default one first, with their keys and what they spent this month. */
export const list_projects = account_endpoint('GET', '/projects', 'read', listInSight, { limited: 'own' });

async function listInSight({ db, clock }: Parts, { account, scope }: AccountCall): Promise<Answer> {
  const now = new Date(clock.now());
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
  const [projects, counts, spent] = await Promise.all([
    listProjects(db, account.id),
    countKeys(db, account.id, now),
    usageOf(db, { account_id: account.id, from: month, to: now, group_by: ['project'] }),
  ]);
  const costs = new Map(spent.map(({ project, cost }) => [project, cost]));
  const all = [{ ...default_project, created_at: null, archived_at: null }, ...projects];
  const seen = all.filter(({ id }) => seesProject(scope, id));
  const data = seen.map(({ id, name, created_at, archived_at }): ProjectView => ({
    id,
    name,
    is_default: id === default_project.id,
    state: archived_at === null ? 'active' : 'archived',
    created_at: created_at?.toISOString() ?? null,
    keys: counts.get(id) ?? 0,
    spent: costView(costs.get(id) ?? 0n, account.currency),
  }));
  return { status: 200, body: { data } satisfies ProjectsView };
}

export const create_project = account_endpoint('POST', '/projects', 'keys', async (app, call) => {
  const name = readBodyFields(call.body).text('name', name_length_max);
  const project = await createProject(app.db, { account_id: call.account.id, name }, new Date(app.clock.now()));
  if (project === 'taken') throw taken(name);
  if (project === 'full') throw invalidField('name', 'The account has as many projects as it may. Archive one first.');
  await auditAction(app, call, 'project.create', project.id, { name });
  return { status: 201, body: { id: project.id, name } };
});

export const rename_project = account_endpoint('PATCH', '/projects/{id}', 'keys', async (app, call) => {
  const name = readBodyFields(call.body).text('name', name_length_max);
  const id = idIn(call);
  const renamed = await renameProject(app.db, { account_id: call.account.id, id, name });
  if (renamed === 'missing') throw unknownProject();
  if (renamed === 'taken') throw taken(name);
  await auditAction(app, call, 'project.rename', id, { name, name_before: renamed.before });
  return { status: 200, body: { id, name } };
});

/** No key can be put there any more; its spending stays in reports. */
export const archive_project = account_endpoint('POST', '/projects/{id}/archive', 'keys', async (app, call) => {
  const id = idIn(call);
  const archived = await archiveProject(app.db, { account_id: call.account.id, id }, new Date(app.clock.now()));
  if (archived === 'missing') throw unknownProject();
  if (archived === 'in_use')
    throw new ApiError('conflict', 'Keys of this project still work. Move or delete them first.');
  await auditAction(app, call, 'project.archive', id, { name: archived.name });
  return { status: 200, body: { ok: true } };
});

function idIn({ params }: AccountCall): string {
  const { id = '' } = params;
  if (id === default_project.id) throw new ApiError('conflict', 'The default project cannot be renamed or archived.');
  if (id.includes('\0')) throw unknownProject();
  return id;
}

function unknownProject(): ApiError {
  return new ApiError('not_found', 'There is no such project, or it is archived.');
}

function taken(name: string): ApiError {
  return invalidField('name', `There is a project "${name}" already. Choose another name.`);
}
