import type { Command } from 'commander';

/** Gives a command its options, the commands below it, and what it does. */
type Fill = (command: Command) => void;

type Entry = {
  /** Its name and arguments. */
  usage: string;
  alias?: string;
  description: string;
  /** Its module, read only if it is chosen: all of them together take as long as the slowest. */
  load: () => Promise<Fill>;
};

/** Every operator command, in the order in which the help tells of them. */
const of_operators: readonly Entry[] = [
  {
    usage: 'account',
    description: 'accounts and their balances',
    load: async () => (await import('./account.ts')).accountCommands,
  },
  { usage: 'key', description: 'API keys', load: async () => (await import('./key.ts')).keyCommands },
  {
    usage: 'project',
    description: 'projects of an account, and the keys in them',
    load: async () => (await import('./project.ts')).projectCommands,
  },
  {
    usage: 'budget',
    description: 'what an account, a project, a key or a member may spend',
    load: async () => (await import('./budget.ts')).budgetCommands,
  },
  { usage: 'task', description: 'generation tasks', load: async () => (await import('./task.ts')).taskCommands },
  {
    usage: 'webhook',
    description: 'webhook deliveries and their secret',
    load: async () => (await import('./webhook.ts')).webhookCommands,
  },
  {
    usage: 'login-link',
    description: 'a link that signs you in to the dashboard, once, within 15 minutes',
    load: async () => (await import('./login-link.ts')).loginLinkCommand,
  },
  {
    usage: 'books',
    alias: 'reconcile',
    description: 'reconcile all money with the ledger; exit 1 on a difference of a millionth',
    load: async () => (await import('./books.ts')).booksCommand,
  },
  {
    usage: 'ledger',
    description: 'months of the ledger',
    load: async () => (await import('./ledger.ts')).ledgerCommands,
  },
  {
    usage: 'audit',
    description: 'the audit log as a file',
    load: async () => (await import('./audit.ts')).auditCommands,
  },
  {
    usage: 'margins',
    description: 'revenue, upstream cost and margin, from the ledger',
    load: async () => (await import('./margins.ts')).marginsCommand,
  },
  {
    usage: 'invoice',
    description: 'monthly invoices',
    load: async () => (await import('./invoice.ts')).invoiceCommands,
  },
  {
    usage: 'provider',
    description: 'providers that are known by name',
    load: async () => (await import('./provider.ts')).providerCommands,
  },
  {
    usage: 'models',
    description: 'the models that are offered, and those that further keys add',
    load: async () => (await import('./models.ts')).modelCommands,
  },
  {
    usage: 'config',
    description: 'the configuration file',
    load: async () => (await import('./config.ts')).configCommands,
  },
  {
    usage: 'reload',
    description: 'ask the running service to read its configuration again',
    load: async () => (await import('./reload.ts')).reloadCommand,
  },
  {
    usage: 'doctor',
    description: 'check everything that the service needs',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  {
    usage: 'logs [file]',
    description: 'the log of the service on this machine, of one account or task, as a person reads it',
    load: async () => (await import('./logs.ts')).logsCommand,
  },
  {
    usage: 'migrate',
    description: 'bring the database schema up to date',
    load: async () => (await import('./doctor.ts')).migrateCommand,
  },
  {
    usage: 'upgrade',
    description: 'tell what a start of this version would change in the database; change nothing',
    load: async () => (await import('./upgrade.ts')).upgradeCommand,
  },
  {
    usage: 'backup <dir>',
    description: 'copy database and files into a new folder, beside the running service',
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  {
    usage: 'backups',
    description: 'the backups that the service made by itself, and why one failed',
    load: async () => (await import('./backups.ts')).backupsCommand,
  },
  {
    usage: 'restore <dir>',
    description: 'restore a backup into an empty database and data folder',
    load: async () => (await import('./restore.ts')).restoreCommand,
  },
];

/** Commands for who uses a service, anywhere: they have an API key and open no database. */
const of_callers: readonly Entry[] = [
  {
    usage: 'login [url]',
    description: 'get an API key for this machine, by a code that you confirm in the dashboard',
    load: async () => (await import('./caller/login.ts')).loginCommand,
  },
  {
    usage: 'logout [url]',
    description: 'forget the API key of this machine, and delete it at the service',
    load: async () => (await import('./caller/logout.ts')).logoutCommand,
  },
  {
    usage: 'whoami',
    description: 'the service, the account and the key that commands use, and the balance',
    load: async () => (await import('./caller/whoami.ts')).whoamiCommand,
  },
  {
    usage: 'run <model> [prompt]',
    description: 'make an image, a video, audio or another file',
    load: async () => (await import('./caller/run.ts')).runCommandOfCallers,
  },
  {
    usage: 'chat [model] [prompt]',
    description: 'ask a chat model once, or talk with it',
    load: async () => (await import('./caller/chat.ts')).chatCommand,
  },
  {
    usage: 'tasks',
    description: 'the tasks of your account: list, show, wait, save, cancel',
    load: async () => (await import('./caller/tasks.ts')).tasksCommands,
  },
  {
    usage: 'calls',
    description: 'the chat calls and tasks of your account, newest first',
    load: async () => (await import('./caller/calls.ts')).callsCommand,
  },
  {
    usage: 'refusals',
    description: 'requests of your account that were refused: by reason, key, model and time',
    load: async () => (await import('./caller/refusals.ts')).refusalsCommand,
  },
  {
    usage: 'webhooks',
    description: 'addresses that get the events of your account: create, test, replay, listen',
    load: async () => (await import('./caller/webhooks.ts')).webhooksCommands,
  },
  {
    usage: 'completion [shell]',
    description: 'a script that completes these commands in bash, zsh or fish',
    load: async () => (await import('./completion.ts')).completionCommand((program) => addCommands(program)),
  },
  {
    usage: 'mcp',
    description: 'tools for agents over stdin and stdout, with the key of your sign-in or MEDLEY_API_KEY',
    load: async () => (await import('./mcp.ts')).mcpCommand,
  },
];

const groups = [
  { heading: 'For operators:', entries: of_operators },
  { heading: 'For callers:', entries: of_callers },
];

/** Tells whether this is the name of a command that has nothing to do with a service on this machine. */
export function isForCallers(name: string | undefined): boolean {
  return of_callers.some(({ usage }) => usage.split(' ', 1)[0] === name);
}

/** Adds all commands by name, and of those that `words` name, or of all, what there is to them. */
export async function addCommands(program: Command, words?: readonly string[]): Promise<void> {
  for (const { heading, entries } of groups) {
    for (const { usage, alias, description, load } of entries) {
      const command = program.command(usage).description(description).helpGroup(heading);
      if (alias !== undefined) command.alias(alias);
      const names = [command.name(), ...command.aliases()];
      if (words === undefined || names.some((name) => words.includes(name))) (await load())(command);
    }
  }
}
