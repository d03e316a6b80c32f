import type { Command } from 'commander';
import { findKey, keyState } from '../accounts/keys.ts';
import {
  archiveProject,
  createProject,
  default_project,
  listProjects,
  moveKey,
  projectNames,
  renameProject,
} from '../accounts/projects.ts';
import type { CommandApp } from '../app/command-app.ts';
import { requireAccount } from './account.ts';
import { CommandError, auditCommand, readText, says, table, withApp, type CommandResult } from './command.ts';

const name_length_max = 100;

type Whose = { account?: string };

export function projectCommands(project: Command): void {
  const create = project.command('create <name>').description('create a project, for keys and their spending');
  whose(create);
  says(create, (name = '') => withApp((app) => createOne(app, name, create.opts())));
  const rename = project.command('rename <project> <name>').description('give a project another name');
  whose(rename);
  says(rename, (id = '', name = '') => withApp((app) => renameOne(app, id, name, rename.opts())));
  const archive = project.command('archive <project>').description('archive a project that has no working keys');
  whose(archive);
  says(archive, (id = '') => withApp((app) => archiveOne(app, id, archive.opts())));
  says(
    project.command('move <key_id> <project>').description('move a key to a project; "default" is that of other keys'),
    (key_id = '', id = '') => withApp((app) => moveOne(app, key_id, id)),
  );
  const list = project.command('list').description('the projects of an account');
  whose(list);
  says(list, () => withApp((app) => listAll(app, list.opts())));
}

function whose(command: Command): void {
  command.requiredOption('--account <account>', 'whose');
}

async function createOne(app: CommandApp, text: string, options: Whose): Promise<CommandResult> {
  const name = readText(text, 'NAME', name_length_max);
  const { id: account_id } = await requireAccount(app, options.account ?? '');
  const project = await createProject(app.db, { account_id, name }, new Date(app.clock.now()));
  if (project === 'taken') throw taken(name);
  if (project === 'full') throw new CommandError('The account has as many projects as it may. Archive one first.');
  await auditCommand(app, { account_id, action: 'project.create', subject: project.id, details: { name } });
  return { json: { id: project.id, name, account_id }, text: project.id };
}

async function renameOne(app: CommandApp, id: string, text: string, options: Whose): Promise<CommandResult> {
  const name = readText(text, 'NAME', name_length_max);
  const { id: account_id } = await requireAccount(app, options.account ?? '');
  const renamed = await renameProject(app.db, { account_id, id, name });
  if (renamed === 'missing') throw unknownProject(id);
  if (renamed === 'taken') throw taken(name);
  const details = { name, name_before: renamed.before };
  await auditCommand(app, { account_id, action: 'project.rename', subject: id, details });
  return { json: { id, name }, text: `${id} is named ${name}` };
}

async function archiveOne(app: CommandApp, id: string, options: Whose): Promise<CommandResult> {
  const { id: account_id } = await requireAccount(app, options.account ?? '');
  const archived = await archiveProject(app.db, { account_id, id }, new Date(app.clock.now()));
  if (archived === 'missing') throw unknownProject(id);
  if (archived === 'in_use') throw new CommandError(`Keys of ${id} still work. Move or delete them first.`);
  await auditCommand(app, { account_id, action: 'project.archive', subject: id, details: { name: archived.name } });
  return { json: { id, archived: true }, text: `${id} is archived` };
}

async function moveOne(app: CommandApp, key_id: string, project_id: string): Promise<CommandResult> {
  const key = await findKey(app.db, key_id);
  if (!key || keyState(key, app.clock.now()) === 'deleted') throw new CommandError(`There is no key "${key_id}".`);
  const { account_id } = key;
  const moved = await moveKey(app.db, { account_id, key_id, project_id });
  if (moved === 'limited')
    throw new CommandError(
      `${key_id}, or a key of its rotation that still works, is limited to its project. Make a new key in ${project_id}, and delete this one.`,
    );
  if (!moved) throw unknownProject(project_id);
  await auditCommand(app, { account_id, action: 'key.change', subject: key_id, details: { project: project_id } });
  const name = (await projectNames(app.db, account_id)).get(project_id) ?? project_id;
  return {
    json: { id: key_id, project: project_id },
    text: `${key_id} is in the project ${name} from its next call on`,
  };
}

async function listAll(app: CommandApp, options: Whose): Promise<CommandResult> {
  const account = await requireAccount(app, options.account ?? '');
  const own = (await listProjects(app.db, account.id)).map(({ id, name, archived_at }) => {
    return { id, name, status: archived_at === null ? 'active' : 'archived' };
  });
  const projects = [{ ...default_project, status: 'active' }, ...own];
  const rows = projects.map(({ id, name, status }) => [id, name, status]);
  return { json: { projects }, text: table([['project', 'name', 'status'], ...rows]) };
}

function unknownProject(id: string): CommandError {
  return new CommandError(`There is no project "${id}", or it is archived.`);
}

function taken(name: string): CommandError {
  return new CommandError(`There is a project "${name}" already.`);
}
