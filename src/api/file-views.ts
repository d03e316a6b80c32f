import type { CallerFile } from '../files/files.ts';
import type { Call } from '../http/endpoint.ts';

/** Files as the SDKs of a style read them. */
type FileView = {
  /** Number of files of a list without `limit`. */
  readonly limit_default: number;
  file(file: CallerFile): object;
  list(files: readonly CallerFile[], has_more: boolean): object;
  deleted(id: string): object;
};

/** The view for a call: SDKs of the messages style name its version in every request. */
export function viewFor({ headers }: Pick<Call, 'headers'>): FileView {
  return headers['anthropic-version'] === undefined ? completions_view : messages_view;
}

/** Files as the SDKs of the chat-completions style read them. */
export const completions_view: FileView = {
  limit_default: 10_000,
  file: (file) => ({
    id: file.id,
    object: 'file',
    bytes: Number(file.size_bytes),
    created_at: unixTime(file.created_at),
    expires_at: unixTime(file.expires_at),
    filename: file.filename,
    purpose: file.purpose,
    status: 'processed',
    kind: file.kind,
    content_type: file.content_type,
    ...(file.width !== null && { width: file.width }),
    ...(file.height !== null && { height: file.height }),
    ...(file.duration_ms !== null && { duration: file.duration_ms / 1000 }),
  }),
  list: (files, has_more) => ({
    object: 'list',
    data: files.map(completions_view.file),
    has_more,
    ...ends(files),
  }),
  deleted: (id) => ({ id, object: 'file', deleted: true }),
};

const messages_view: FileView = {
  limit_default: 20,
  file: (file) => ({
    id: file.id,
    type: 'file',
    filename: file.filename,
    mime_type: file.content_type.split(';')[0],
    size_bytes: Number(file.size_bytes),
    created_at: file.created_at.toISOString(),
    expires_at: file.expires_at.toISOString(),
    downloadable: true,
  }),
  list: (files, has_more) => ({
    data: files.map(messages_view.file),
    has_more,
    ...ends(files),
    next_page: has_more ? (files.at(-1)?.id ?? null) : null,
  }),
  deleted: (id) => ({ id, type: 'file_deleted' }),
};

/** A file as the SDKs of Gemini read it; times are RFC 3339. Its URI is found in requests by the id at its end. */
export function geminiFile(file: CallerFile, base_url: string): object {
  const created = file.created_at.toISOString();
  return {
    name: `files/${file.name ?? file.id}`,
    displayName: file.filename,
    mimeType: file.content_type.split(';')[0],
    sizeBytes: String(file.size_bytes),
    createTime: created,
    updateTime: created,
    expirationTime: file.expires_at.toISOString(),
    ...(file.sha256 !== null && { sha256Hash: Buffer.from(file.sha256).toString('base64') }),
    uri: `${base_url.replace(/\/+$/, '')}/v1beta/files/${file.id}`,
    state: 'ACTIVE',
    source: 'UPLOADED',
    ...(file.kind === 'video' &&
      file.duration_ms !== null && { videoMetadata: { videoDuration: `${file.duration_ms / 1000}s` } }),
  };
}

function ends(files: readonly CallerFile[]): { first_id: string | null; last_id: string | null } {
  return { first_id: files[0]?.id ?? null, last_id: files.at(-1)?.id ?? null };
}

export function unixTime(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
