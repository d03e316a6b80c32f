import type { Db } from '../db/database.ts';
import type { Prober } from '../storage/probe.ts';
import type { Providers } from '../providers/open.ts';
import { mediaForm } from '../providers/provider.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import type { Caller } from '../accounts/authenticate.ts';
import { findUpload } from '../accounts/caller-files.ts';
import { mediaTexts, replaceMedia } from '../catalog/media-fields.ts';
import type { JsonObject, MediaField, Model } from '../catalog/model.ts';
import type { Durations } from '../catalog/price.ts';
import { ApiError } from '../errors.ts';
import type { CallerFile } from '../files/files.ts';
import type { RequestTempFiles } from '../files/temp-files.ts';
import { checkUserUrl, type AddressRules } from '../net/address.ts';
import { dataUrlBytesMax, isDataUrl, readDataUrl } from '../lib/data-url.ts';
import { GuardError, type Guard } from '../net/guard.ts';
import { isId } from '../lib/ids.ts';
import { probe_messages, type Probe } from '../storage/probe-result.ts';
import { keepInput, type InputParts } from './inputs.ts';
import { inline_bytes_max } from './run-media.ts';

/** The parts of the app that looking at the files of an input takes. */
export type MediaParts = InputParts & {
  readonly db: Db;
  readonly guard: Guard;
  readonly prober: Prober;
  readonly providers: Providers;
  readonly limits: { caller_files: Semaphore; input_downloads: Semaphore };
  addressRules(): AddressRules;
};

/** Files in the inputs of tasks: looked at when a task is created, and kept until it is final. */

/** The kind of a text in a media field. */
type Source =
  /** Goes to the upstream as it is, or is fetched for it. */
  | { type: 'link' }
  | { type: 'upload'; file: CallerFile }
  /** Came in the request, or was fetched because it had to be measured: to be kept as a file. */
  | { type: 'bytes'; content: Buffer | string; probe: Probe };

/** A file that came beside the input and lies at `path` until the task is created, which keeps it. */
export type Attachment = { path: string; probe: Probe };

/** Attachments of an input. */
export type AttachedFiles = {
  /** By the texts that stand for them in the input. */
  attachments?: Attachments;
  /** For files that are fetched: they lie in it until the task is created, which keeps them. */
  spool: RequestTempFiles;
};

export type Attachments = ReadonlyMap<string, Attachment>;

/** The files of an input, all of which can be used. */
export type CheckedMedia = { sources: ReadonlyMap<string, Source>; durations: Durations };

const no_media: CheckedMedia = { sources: new Map(), durations: new Map() };

const files_max = 64;
const url_length_max = 2048;

/**
 * Looks at all files of an input: links may be dialled, data URLs and uploads are what their field takes. Links are
 * fetched only where a price counts how long their file is. Throws ApiError 422 naming the field.
 */
export async function checkMedia(
  parts: MediaParts,
  caller: Caller,
  model: Model,
  input: JsonObject,
  attached: AttachedFiles,
): Promise<CheckedMedia> {
  const used = model.media.filter((field) => mediaTexts(input, field).length > 0);
  if (used.length === 0) return no_media;
  const count = used.reduce((sum, field) => sum + mediaTexts(input, field).length, 0);
  if (count > files_max) throw new ApiError('invalid_input', `input may have at most ${files_max} files.`);
  const sources = new Map<string, Source>();
  let left_bytes = parts.catalog.current.settings.files.file_bytes_max; // so much, too, of all that come with an input
  await replaceMedia(input, used, async (text, field, place) => {
    const seen = sources.get(text);
    const must_be_fetched = seen?.type === 'link' && isMeasured(model, field); // first met where nothing is measured
    const request = { text, field, place, model, attached, left_bytes };
    const source = seen && !must_be_fetched ? seen : await readSource(parts, caller, request);
    checkKind(source, field, place);
    sources.set(text, source);
    if (source !== seen && source.type === 'bytes') left_bytes -= source.probe.size_bytes;
    return text;
  });
  return { sources, durations: measureDurations(model, input, sources) };
}

type SourceRequest = {
  text: string;
  field: MediaField;
  place: string;
  model: Model;
  attached: AttachedFiles;
  left_bytes: number;
};

async function readSource(parts: MediaParts, caller: Caller, request: SourceRequest): Promise<Source> {
  const { text, field, place, model, attached } = request;
  const attachment = attached.attachments?.get(text);
  if (attachment) return useAttachment(parts, attachment, request);
  if (isDataUrl(text)) return readInline(parts, caller, request);
  if (isId('file', text)) return useUpload(parts, caller, request);
  if (!/^https?:/i.test(text))
    throw invalidMedia(place, 'must be an http(s) link, a data URL or the id of an uploaded file.');
  if (text.length > url_length_max) throw invalidMedia(place, `may have at most ${url_length_max} characters.`);
  const problem = checkUserUrl(text, parts.addressRules());
  if (problem) throw invalidMedia(place, problem);
  return isMeasured(model, field) ? fetchLink(parts, caller, request) : { type: 'link' };
}

function useAttachment(parts: MediaParts, { path, probe }: Attachment, { place, model }: SourceRequest): Source {
  const size_bytes_max = largest(parts, model);
  if (probe.size_bytes > size_bytes_max) throw tooLarge(place, size_bytes_max);
  return { type: 'bytes', content: path, probe };
}

/** Each has its whole request in memory. */
const waiting_max = 16;

async function readInline(parts: MediaParts, caller: Caller, { text, place, model }: SourceRequest): Promise<Source> {
  const size_bytes_max = largest(parts, model);
  if (dataUrlBytesMax(text) > size_bytes_max) throw tooLarge(place, size_bytes_max);
  const inline = readDataUrl(text, size_bytes_max);
  if (!inline) throw invalidMedia(place, 'is not a valid data URL.');
  if (parts.limits.caller_files.waiting(caller.account.id) >= waiting_max) {
    const message = 'Too many files of this account wait to be measured. Try again in a moment.';
    throw new ApiError('rate_limit', message, { headers: { 'retry-after': '1' } });
  }
  return { type: 'bytes', content: inline.bytes, probe: await measure(parts, caller, inline.bytes, place) };
}

async function useUpload(parts: MediaParts, caller: Caller, { text, place, model }: SourceRequest): Promise<Source> {
  const file = await findUpload(parts.db, caller, text, new Date(parts.clock.now()));
  if (!file) throw invalidMedia(place, `must be the id of one of your files: there is no ${text}.`);
  const size_bytes_max = largest(parts, model);
  if (file.size_bytes > size_bytes_max) throw tooLarge(place, size_bytes_max);
  return { type: 'upload', file };
}

/**
 * Returns the largest file for a model: a file that goes inline into requests must be smaller than one that is
 * fetched from us.
 */
function largest(parts: MediaParts, { routes }: Model): number {
  const only_inline = routes.every((route) => {
    const provider = parts.providers.get(route.provider);
    return provider !== undefined && mediaForm(provider, route.options) === 'data';
  });
  const { file_bytes_max } = parts.catalog.current.settings.files;
  return only_inline ? Math.min(inline_bytes_max, file_bytes_max) : file_bytes_max;
}

/** A minute is what a caller may have to wait for. */
const fetch_limits = { connect_timeout_ms: 10_000, idle_timeout_ms: 15_000, timeout_ms: 60_000, redirects_max: 3 };

async function fetchLink(parts: MediaParts, caller: Caller, request: SourceRequest): Promise<Source> {
  const { text, place, model, attached, left_bytes } = request;
  const size_bytes_max = largest(parts, model);
  const spool = await attached.spool.open(); // first: those who have its permit wait for this one
  const permit = await parts.limits.input_downloads.acquire(caller.account.id, { signal: attached.spool.gone });
  if (!permit) throw invalidMedia(place, 'was not fetched: the connection ended before its turn came.');
  const limits = { ...fetch_limits, rules: parts.addressRules(), size_bytes_max: Math.min(size_bytes_max, left_bytes) };
  try {
    const path = await spool.add((file) => parts.guard.save(text, file, limits));
    return { type: 'bytes', content: path, probe: await measure(parts, caller, path, place) };
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    if (error.code !== 'too_large') throw invalidMedia(place, `cannot be fetched: ${error.message}`);
    throw left_bytes < size_bytes_max ? tooMuch(parts, place) : tooLarge(place, size_bytes_max);
  } finally {
    permit.release();
  }
}

const reasons = { ...probe_messages, empty: 'is an empty file.' };

async function measure(
  parts: MediaParts,
  { account }: Caller,
  content: Buffer | string,
  place: string,
): Promise<Probe> {
  const result = await parts.prober.probeForCaller(account.id, content);
  if (result.ok) return result.probe;
  throw invalidMedia(place, reasons[result.reason]);
}

function checkKind(source: Source, { kind }: MediaField, place: string): void {
  if (source.type === 'link') return;
  const type = source.type === 'upload' ? source.file : { ...source.probe, kind: source.probe.type };
  if (type.kind === kind) return;
  throw invalidMedia(
    place,
    `must be ${kind === 'video' ? 'a video' : `an ${kind}`} file (its bytes are ${type.content_type}).`,
  );
}

function isMeasured(model: Model, { name }: MediaField): boolean {
  const factors = Object.values(model.estimate).flatMap((each) => each ?? []);
  return factors.some((factor) => 'duration_of' in factor && factor.duration_of === name);
}

/** Returns the total duration of the files of each field that a price counts. */
function measureDurations(model: Model, input: JsonObject, sources: ReadonlyMap<string, Source>): Durations {
  const measured = model.media.filter((field) => isMeasured(model, field) && mediaTexts(input, field).length > 0);
  return new Map(
    measured.map((field) => {
      const durations = mediaTexts(input, field).map((text) => durationOf(sources.get(text)));
      const total_ms = durations.reduce((sum, duration_ms) => sum + duration_ms, 0);
      return [field.name, (total_ms / 1000).toFixed(3)];
    }),
  );
}

function durationOf(source: Source | undefined): number {
  if (source?.type === 'upload') return source.file.duration_ms ?? 0;
  return source?.type === 'bytes' ? Math.round((source.probe.duration ?? 0) * 1000) : 0;
}

function tooLarge(place: string, size_bytes_max: number): ApiError {
  return invalidMedia(place, `is larger than ${size_bytes_max / 1_000_000} MB.`);
}

function tooMuch(parts: MediaParts, place: string): ApiError {
  const { file_bytes_max } = parts.catalog.current.settings.files;
  return invalidMedia(place, `and the files before it are larger than ${file_bytes_max / 1_000_000} MB together.`);
}

function invalidMedia(place: string, message: string): ApiError {
  return new ApiError('invalid_input', `${place} ${message}`, { param: place });
}

/** Keeps what came in the request as files of the task, and answers the input with their ids in place of the bytes. */
export async function keepMedia(
  parts: MediaParts,
  caller: Caller,
  request: { model: Model; input: JsonObject; media: CheckedMedia },
  task: { id: string; deadline_at: Date },
): Promise<JsonObject> {
  const owner = { ...task, account_id: caller.account.id, key_id: caller.key.id };
  const ids = new Map<string, string>();
  for (const [text, source] of request.media.sources) {
    if (source.type !== 'bytes') continue;
    const file = await keepInput(parts, owner, { probe: source.probe, content: source.content });
    ids.set(text, file.id);
  }
  if (ids.size === 0) return request.input;
  return replaceMedia(request.input, request.model.media, async (text) => ids.get(text) ?? text);
}
