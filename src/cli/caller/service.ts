import type { Command } from 'commander';
import {
  ApiError,
  ConnectionError,
  Medley,
  MedleyError,
  TaskFailedError,
} from '../../../clients/typescript/src/index.ts';
import { local_url, readCaller } from '../../config.ts';
import { program_name } from '../../lib/program-name.ts';
import { CommandError, type ExitCode } from '../result.ts';
import { readCredentials, type Credential } from './credentials.ts';
import { Interrupted, oneLine } from './terminal.ts';

/** A service and the key by which commands use it. */
export type Service = {
  url: string;
  api_key: string;
  client: Medley;
  /** The stored credential; undefined for a key of the environment. */
  credential: Credential | undefined;
};

/** Adds the option that names the service. */
export function takesService(command: Command): Command {
  return command.option('--url <url>', 'the service; else MEDLEY_URL, else the one that you signed in to last');
}

/** Returns the address of a service without `/v1` or a slash at its end. Throws CommandError (usage). */
export function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password)
    throw new CommandError(
      `The address of the service must be like https://medley.example.com, not "${oneLine(text, 200)}".`,
      2,
    );
  return (url.origin + url.pathname).replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** Returns the address that is meant: the option's, the environment's, that of the last sign-in, this machine's. */
export function chosenUrl(option: string | undefined): string {
  const { url, config_dir, api_key } = readCaller();
  if (option !== undefined) return readUrl(option);
  // A key of the environment goes to no address that it does not name: it may be of another service.
  return url ?? (api_key === undefined ? readCredentials(config_dir).current : undefined) ?? local_url;
}

/** Opens the service that is meant. Throws CommandError where there is no key for it. */
export function openService(option: string | undefined): Service {
  const { api_key, config_dir } = readCaller();
  const url = chosenUrl(option);
  const credential = api_key === undefined ? readCredentials(config_dir).services.get(url) : undefined;
  const key = api_key ?? credential?.api_key;
  if (key === undefined)
    throw new CommandError(
      `You are not signed in to ${url}. Run "${program_name} login ${url}", or set MEDLEY_API_KEY.`,
      3,
    );
  try {
    return { url, api_key: key, client: new Medley({ base_url: url, api_key: key }), credential };
  } catch (error) {
    throw error instanceof MedleyError ? new CommandError(`The API key cannot be used: ${error.message}`, 3) : error;
  }
}

/** Runs `work` and explains what went wrong. */
export async function withService<T>(option: string | undefined, work: (service: Service) => Promise<T>): Promise<T> {
  const service = openService(option);
  try {
    return await work(service);
  } catch (error) {
    throw explained(error, service.url);
  }
}

const exit_code_of_status: Readonly<Record<number, ExitCode>> = { 401: 3, 402: 4, 403: 4 };

/** Returns the error as a person or a program gets it: with what to do, and an exit code. */
export function explained(error: unknown, url: string): unknown {
  if (error instanceof Interrupted) return new CommandError('Interrupted.', 130);
  if (error instanceof TaskFailedError) {
    const facts = { type: error.type, task: error.task };
    return new CommandError(`The task ${error.task.id} failed: ${oneLine(error.message)} It costs nothing.`, 1, facts);
  }
  if (error instanceof ApiError) {
    const { status, type, code, param, request_id } = error;
    const exit_code = type === 'rate_limit_error' ? 4 : (exit_code_of_status[status] ?? 1);
    const advice = adviceFor(error, url);
    const facts = { status, type, code, param, request_id };
    return new CommandError(`${oneLine(error.message)}${advice}`, exit_code, facts);
  }
  if (error instanceof ConnectionError) {
    const reason = error.cause instanceof Error ? ` (${oneLine(reasonOf(error.cause), 200)})` : '';
    return new CommandError(`${url} gave no answer: ${error.message}${reason} Is it the address of a Medley?`, 5);
  }
  return error instanceof MedleyError ? new CommandError(oneLine(error.message)) : error;
}

/** fetch() itself says only that it failed. */
function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function adviceFor({ status, request_id }: ApiError, url: string): string {
  if (status === 401) return ` Run "${program_name} login ${url}" for a new key.`;
  if (status === 402) return ' Top up the account, or ask its owner to.';
  if (status >= 500 && request_id !== undefined) return ` Tell the operator the request ${oneLine(request_id, 60)}.`;
  return '';
}
