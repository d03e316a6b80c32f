import type { App } from '../app.ts';
import { mediaTexts, replaceMedia } from '../catalog/media-fields.ts';
import type { JsonObject, Route } from '../catalog/model.ts';
import { findFile, type CallerFile } from '../files/files.ts';
import { checkUserUrl } from '../lib/address.ts';
import { writeDataUrl } from '../lib/data-url.ts';
import { GuardError } from '../lib/guard.ts';
import { isId } from '../lib/ids.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { InputRefused, NotStarted, type Provider } from '../providers/provider.ts';
import { mediaType } from '../storage/media-types.ts';
import { makeLink } from '../storage/links.ts';
import { probeAgain } from '../storage/probe.ts';
import type { Task } from './task.ts';

/** Files of an input in the form that the provider of a route takes. */

/** Of all files that go into one request together: base64 and JSON make five times of it, for each run being started. */
export const inline_bytes_max = 32_000_000;

/** Where an upstream takes both, larger files are linked: many refuse or slow down longer requests. */
const inline_preferred_bytes_max = 262_144;

/** A run may be late, and its upstream fetches when it begins. */
const link_extra_ms = 3_600_000;

const fetch_limits = { connect_timeout_ms: 10_000, idle_timeout_ms: 15_000, timeout_ms: 60_000, redirects_max: 3 };

type Run = { app: App; task: Task; route: Route; provider: Provider; stopped: AbortSignal };

/**
 * The input for a route, or why it cannot be had: InputRefused is for the caller, whose file is gone or cannot be
 * fetched; NotStarted lets the next route try. `input` is the JSON text of the task's.
 */
export async function prepareInput(
  app: App,
  task: Task,
  input: string,
  wanted: { route: Route; provider: Provider; stopped: AbortSignal },
): Promise<JsonObject | NotStarted | InputRefused> {
  const plain: JsonObject = JSON.parse(input);
  const fields = (wanted.route.media ?? []).filter((field) => mediaTexts(plain, field).length > 0);
  if (fields.length === 0) return plain;
  const { stopped } = wanted;
  const run = { app, task, ...wanted };
  const budget = { left_bytes: inline_bytes_max };
  try {
    return await replaceMedia(plain, fields, (text, field, place) =>
      isId('file', text) ? giveFile(run, text, place, budget) : giveLink(run, text, field.kind, place, budget),
    );
  } catch (error) {
    if (stopped.aborted) throw error; // given back: another worker begins anew
    if (error instanceof InputRefused || error instanceof NotStarted) return error;
    app.log.error({ task_id: task.id, err: error }, 'a file of an input could not be read');
    return ours('unavailable', 'a file of the input could not be read');
  }
}

/** For what is not the upstream's fault: health does not count it. */
function ours(reason: NotStarted['reason'], message: string): NotStarted {
  return new NotStarted(reason, message, { simulated: true });
}

type Budget = { left_bytes: number };

async function giveFile(run: Run, id: string, place: string, budget: Budget): Promise<string> {
  const { app, task, provider } = run;
  const file = await findFile(app.db, { account_id: task.account_id, id }, new Date(app.clock.now()));
  if (!file) throw new InputRefused('invalid_request', `${place}: the file was deleted, or expired, before the run.`);
  const size_bytes = Number(file.size_bytes);
  if (provider.media === undefined) throw takesNone(run);
  const reachable = isReachable(run);
  if (provider.media === 'link' && !reachable) {
    const message = 'the provider fetches files by links, but base_url is no address that it can reach';
    throw ours('refused', message);
  }
  const linked = provider.media === 'link' || (provider.media === 'either' && size_bytes > inline_preferred_bytes_max);
  return linked && reachable ? link(run, file) : readInline(run, file, budget);
}

/** A provider in our own network reaches private addresses too. */
function isReachable({ app, route }: Run): boolean {
  const { allow_private = false } = app.catalog.current.providers.get(route.provider) ?? {};
  return checkUserUrl(app.base_url(), { allow: [], allow_private }) === undefined;
}

function link({ app, route }: Run, file: CallerFile): string {
  const expires_at_ms = app.clock.now() + route.timeout_ms.start + route.timeout_ms.total + link_extra_ms;
  return makeLink(app.secret, { base_url: app.base_url(), key: file.storage_key, expires_at_ms }).url;
}

async function readInline({ app }: Run, file: CallerFile, budget: Budget): Promise<string> {
  spend(budget, Number(file.size_bytes));
  const opened = await app.storage.open(file.storage_key);
  if (!opened) throw new Error(`the bytes of ${file.id} are gone`);
  const bytes = await readBytes(opened.stream, inline_bytes_max);
  return writeDataUrl({ content_type: plainType(file.content_type), bytes });
}

function spend(budget: Budget, size_bytes: number): void {
  budget.left_bytes -= size_bytes;
  if (budget.left_bytes >= 0) return;
  throw ours('refused', `the files of the input are larger than ${inline_bytes_max / 1_000_000} MB together`);
}

function plainType(content_type: string): string {
  return content_type.split(';')[0] ?? content_type;
}

async function giveLink(
  run: Run,
  url: string,
  kind: 'image' | 'video' | 'audio',
  place: string,
  budget: Budget,
): Promise<string> {
  if (run.provider.media === undefined) throw takesNone(run);
  if (run.provider.media !== 'data') return url;
  const { bytes } = await fetchLink(run, url, place, budget.left_bytes);
  spend(budget, bytes.length);
  const probed = await probeAgain(bytes);
  if (!probed.ok || probed.probe.type !== kind) {
    const found = probed.ok ? probed.probe.content_type : 'no file that can be read';
    throw new InputRefused('invalid_request', `${place}: the link leads to ${found}, not to a file of type ${kind}.`);
  }
  return writeDataUrl({ content_type: plainType(mediaType(probed.probe.extension).content_type), bytes });
}

async function fetchLink({ app, stopped }: Run, url: string, place: string, size_bytes_max: number) {
  const limits = { ...fetch_limits, rules: app.addressRules(), size_bytes_max, signal: stopped };
  try {
    return await app.guard.download(url, limits);
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    throw new InputRefused('invalid_request', `${place} cannot be fetched: ${error.message}`);
  }
}

function takesNone({ route }: Run): NotStarted {
  return ours('refused', `the provider ${route.provider} takes no files`);
}
