import type { Command } from 'commander';
import { accountCommands } from './account.ts';
import { backupCommands } from './backup.ts';
import { booksCommand } from './books.ts';
import { marginsCommand } from './margins.ts';
import { configCommands } from './config.ts';
import { doctorCommands } from './doctor.ts';
import { invoiceCommands } from './invoice.ts';
import { keyCommands } from './key.ts';
import { modelCommands } from './models.ts';
import { loginLinkCommand } from './login-link.ts';
import { taskCommands } from './task.ts';
import { webhookCommands } from './webhook.ts';

/** Every operator command, in the order in which the help tells of them. */
export function addCommands(program: Command): void {
  accountCommands(program);
  keyCommands(program);
  taskCommands(program);
  webhookCommands(program);
  loginLinkCommand(program);
  booksCommand(program);
  marginsCommand(program);
  invoiceCommands(program);
  modelCommands(program);
  configCommands(program);
  doctorCommands(program);
  backupCommands(program);
}
