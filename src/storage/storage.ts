import type { Readable } from 'node:stream';

/** Facts about a stored file that need no read. */
export type StoredFile = {
  size_bytes: number;
  /** Another text once the bytes are others, the same as long as the file is the same; opaque. */
  version: string;
};

/** Both ends belong to the range, as in HTTP. */
export type ByteRange = { start: number; end: number };

export type OpenedFile = StoredFile & ByteRange & { stream: Readable };

export type PutOptions = { content_type: string; size_limit_bytes: number };

/**
 * Storage of outputs: a folder or a bucket. Keys are those of key.ts; writing the same key again replaces the
 * file as a whole, so a step that is repeated after a crash does no harm.
 */
export type Storage = {
  /** The place as people read it: a folder, or `s3://bucket/prefix`. */
  readonly place: string;
  /**
   * Keeps `bytes` under `key`; when it returns, the file outlives a power cut. Until then readers
   * see what was there before. Throws StorageFull, FileTooLarge, StorageUnavailable, or the error of the stream.
   */
  put(key: string, bytes: Buffer | Readable, options: PutOptions): Promise<{ size_bytes: number; sha256: string }>;
  /** Returns undefined if there is no such file. */
  stat(key: string): Promise<StoredFile | undefined>;
  /**
   * Opens a file, or the part of it that lies in `range`; undefined if there is no such file. The
   * stream must be read to its end or destroyed. Removing the file does not disturb it.
   */
  open(key: string, range?: ByteRange): Promise<OpenedFile | undefined>;
  /** Removes what is there; keys without a file are fine. */
  remove(keys: readonly string[]): Promise<void>;
  /** The keys of one task's files, or of one uploaded file, whatever put them there. */
  list(account_id: string, owner_id: string): Promise<string[]>;
  /**
   * Removes what interrupted puts left behind and nobody wrote to for `older_than_ms`. Answers how
   * many. Must be longer than any silence of a running download.
   */
  sweepTemporaryFiles(older_than_ms: number): Promise<number>;
  /** Returns false while files cannot be put: what would only make more of them waits. */
  ready(): Promise<boolean>;
  /** Makes an address at which the storage itself serves the file for this time. Absent where files go through us. */
  presign?(key: string, options: PresignOptions): Promise<string>;
};

export type PresignOptions = { lifetime_s: number; content_type: string; content_disposition: string };

/** No space is left (disk, quota or file size limit); nothing was stored. */
export class StorageFull extends Error {
  override name = 'StorageFull';
}

/** The storage cannot be reached, or refuses; the message says where and why, for operators. */
export class StorageUnavailable extends Error {
  override name = 'StorageUnavailable';
  /** To wait is no help: the configuration, or the storage's own, is wrong. */
  readonly is_refusal: boolean;

  constructor(message: string, { is_refusal = false, cause }: { is_refusal?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.is_refusal = is_refusal;
  }
}

/** The bytes exceed `size_limit_bytes`; nothing was kept. */
export class FileTooLarge extends Error {
  override name = 'FileTooLarge';
  readonly size_limit_bytes: number;

  constructor(size_limit_bytes: number) {
    super(`The file is larger than ${size_limit_bytes} bytes.`);
    this.size_limit_bytes = size_limit_bytes;
  }
}
