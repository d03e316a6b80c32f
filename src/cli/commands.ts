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
const entries: readonly Entry[] = [
  {
    usage: 'account',
    description: 'accounts and their balances',
    load: async () => (await import('./account.ts')).accountCommands,
  },
  { usage: 'key', description: 'API keys', load: async () => (await import('./key.ts')).keyCommands },
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
  {
    usage: 'mcp',
    description: 'tools for agents over stdin and stdout, with MEDLEY_API_KEY',
    load: async () => (await import('./mcp.ts')).mcpCommand,
  },
];

/** Adds all commands by name, and of those that `words` name, or of all, what there is to them. */
export async function addCommands(program: Command, words?: readonly string[]): Promise<void> {
  for (const { usage, alias, description, load } of entries) {
    const command = program.command(usage).description(description);
    if (alias !== undefined) command.alias(alias);
    const names = [command.name(), ...command.aliases()];
    if (words === undefined || names.some((name) => words.includes(name))) (await load())(command);
  }
}
