import type { ConversationChanges } from '../../../../../src/dashboard/views/playground.ts';
import { Failure } from '../../../api.ts';
import { announceEverywhere, browser_store, sync_store, type Unsent } from '../conversation-store.ts';
import { lineOf, type ConversationLine } from '../saved-conversation.ts';
import { fallBackToMemory } from '../tables.ts';
import { lineIn, serverCopy, type ServerCopy } from './server-copy.ts';
import { withoutFiles } from './portable.ts';

/** A conversation on the server: the line of the list. */
export type ServerLine = ConversationLine & { version: number };

/** The person's choice, and what the server has. `days`: how long a conversation stays there; 0: it takes none. */
export type ServerView = ServerState & { lines: readonly ServerLine[] };

type ServerState = Pick<ConversationChanges, 'days' | 'is_on' | 'is_encrypted'>;

/** The state of the sending. `problem`: why something is not on the server yet. */
export type Sending = { left: number; problem: string | undefined };

/** While answers come, they are sent this often. */
const busy_every_ms = 15_000;
const retry_ms = 15_000;
const merges_max = 50;

const nothing_to_send: Sending = { left: 0, problem: undefined };

/**
 * Sends conversations of this browser to the server, and brings what others of the same person's browsers sent. The
 * browser's store is what the page works on: this one runs behind it, one step at a time.
 */
export class Synchroniser {
  readonly #owner: string;
  readonly #server: ServerCopy;
  #state: ServerState | undefined;
  #epoch: string | undefined;
  #lines = new Map<string, ServerLine>();
  #since = 0;
  #sending = nothing_to_send;
  /** Edits that the server refused for good. */
  readonly #refused = new Map<string, { edit: string | undefined; message: string }>();
  readonly #listeners = new Set<() => void>();
  #turn: Promise<unknown> = Promise.resolve();
  #timer: number | undefined;
  #last_sent_at = 0;
  /** The conversation that is open: changes of it are brought at once. */
  open_id: string | undefined;
  in_memory = false;
  /** The person's role has conversations on the server. */
  is_allowed = false;

  constructor(owner: string, base: string, person: string) {
    this.#owner = owner;
    this.#server = serverCopy(base, person);
    window.addEventListener('online', () => this.sendSoon());
  }

  get sending(): Sending {
    return this.#sending;
  }

  get is_on(): boolean {
    return this.#state?.is_on ?? false;
  }

  /** Calls `hear` after changes, until it is ended. */
  readonly listen = (hear: () => void): (() => void) => {
    this.#listeners.add(hear);
    return () => this.#listeners.delete(hear);
  };

  view(): ServerView | undefined {
    return this.#state && { ...this.#state, lines: [...this.#lines.values()] };
  }

  /** Reads what is new on the server, then sends what is new here. */
  refresh(): Promise<ServerView> {
    return this.#inTurn(async () => {
      const state = await this.#readChanges();
      this.#later(0);
      return { ...state, lines: [...this.#lines.values()] };
    });
  }

  /** Sends what was saved: now, or after a while if answers are coming. */
  sendSoon({ is_busy = false } = {}): void {
    if (!this.is_on) return;
    this.#later(is_busy ? Math.max(0, this.#last_sent_at + busy_every_ms - Date.now()) : 0);
  }

  /** Brings a conversation, if the server has one that this browser has not seen. Undefined if neither has it. */
  bring(id: string) {
    return this.#inTurn(async () => {
      if (!this.#state && this.is_allowed) await this.#readChanges();
      if (this.is_on && this.#lines.has(id)) await this.#bring(id);
      return browser_store.load(this.#owner, id);
    });
  }

  /** Deletes a conversation here, and on the server as soon as that can be reached. */
  async remove(id: string): Promise<void> {
    await browser_store.remove(this.#owner, [id], this.is_on ? this.#epoch : undefined);
    this.sendSoon();
  }

  async switchOn(): Promise<void> {
    await this.#server.choose({ is_on: true });
    await this.refresh();
  }

  /** Ends it. With `remove` everything is brought here before it goes there. */
  async switchOff({ remove }: { remove: boolean }): Promise<void> {
    await this.#inTurn(async () => {
      if (remove) {
        await this.#readChanges();
        for (const id of this.#lines.keys()) await this.#bring(id);
      }
      await this.#server.choose({ is_on: false, remove });
      this.#report(nothing_to_send);
    });
    await this.refresh();
  }

  async #readChanges(): Promise<ServerState> {
    const deleted: string[] = [];
    let state = await this.#readPage(deleted);
    while (state.has_more) state = await this.#readPage(deleted);
    if (this.is_on) this.in_memory = await fallBackToMemory();
    await this.#drop(deleted);
    if (this.open_id !== undefined) await this.#bring(this.open_id);
    this.#changed();
    return state;
  }

  /** Reads changes after the last that was seen. Adds the ids of tombstones to `deleted`. */
  async #readPage(deleted: string[]): Promise<ServerState & { has_more: boolean }> {
    const since = this.#since;
    const { data, epoch, has_more, ...state } = await this.#server.changes(since);
    this.#state = state;
    if (!state.is_on || epoch === null) {
      this.#begin(undefined);
      return { ...state, has_more: false };
    }
    if (epoch !== this.#epoch) {
      this.#begin(epoch);
      if (since > 0) return { ...state, has_more: true }; // what came is the end of another list
    }
    for (const { id, version, is_deleted, line } of data) {
      if (is_deleted) deleted.push(id);
      const read = is_deleted ? undefined : lineIn(line);
      if (read) this.#lines.set(id, { ...read, id, version });
      else this.#lines.delete(id);
      this.#since = version;
    }
    return { ...state, has_more };
  }

  #begin(epoch: string | undefined): void {
    this.#epoch = epoch;
    this.#lines = new Map();
    this.#since = 0;
  }

  /** Removes copies of what was deleted in another browser. */
  async #drop(ids: readonly string[]): Promise<void> {
    const dropped = ids.length === 0 ? [] : await sync_store.drop(this.#owner, ids);
    if (dropped.length > 0) announceEverywhere({ owner: this.#owner, kind: 'removed', ids: dropped });
  }

  /** Takes over what the server has, unless this browser has seen it. */
  async #bring(id: string): Promise<void> {
    const line = this.#lines.get(id);
    const epoch = this.#epoch;
    if (!line || epoch === undefined) return;
    const local = await sync_store.begin(this.#owner, id, epoch);
    if (local?.record && local.record.version >= line.version) return;
    try {
      const { conversation, version, files } = await this.#server.read(id, local?.conversation);
      const both = await sync_store.takeOver(this.#owner, { ...conversation, id }, { epoch, version, files });
      if (both) announceEverywhere({ owner: this.#owner, kind: 'saved', ids: [id] });
    } catch (error) {
      if (codeOf(error) === deleted_code) await this.#drop([id]);
      else if (!(error instanceof Failure) || error.status !== 404) throw error;
      this.#lines.delete(id);
    }
  }

  /** One at a time, so that somebody who opens a conversation waits for one at most. */
  async #sendNext(): Promise<void> {
    const epoch = this.#epoch;
    if (!this.is_on || epoch === undefined) return;
    const { changed, removed } = await sync_store.unsent(this.#owner, epoch);
    const refusalOf = ({ id, edit }: Changed) => {
      const refusal = this.#refused.get(id);
      return refusal && refusal.edit === edit ? refusal.message : undefined;
    };
    const open = changed.filter((each) => refusalOf(each) === undefined);
    const left = removed.length + open.length;
    const refusal = changed.map(refusalOf).find((message) => message !== undefined);
    this.#report({ left, problem: refusal ?? (left > 0 ? this.#sending.problem : undefined) });
    const [removed_id] = removed;
    const [first] = open;
    try {
      if (removed_id !== undefined) await this.#sendRemoval(removed_id);
      else if (first) await this.#send(first.id, epoch);
      else return;
      this.#last_sent_at = Date.now();
      this.#report({ left: left - 1, problem: refusal });
      if (left > 1) this.#later(0); // what was saved meanwhile has its own time
    } catch (error) {
      this.#fail(error, removed_id === undefined ? first : undefined);
    }
  }

  async #sendRemoval(id: string): Promise<void> {
    await this.#server.remove(id);
    await sync_store.drop(this.#owner, [id]);
    this.#lines.delete(id);
  }

  async #send(id: string, epoch: string): Promise<void> {
    let sends_all_files = false;
    for (let merges = 0; merges < merges_max; merges += 1) {
      const unsent = await sync_store.begin(this.#owner, id, epoch);
      if (!unsent) return;
      try {
        return await this.#save(unsent, epoch, sends_all_files);
      } catch (error) {
        const code = codeOf(error);
        if (code === deleted_code) {
          this.#lines.delete(id);
          return await this.#drop([id]);
        }
        if (code === 'files_missing' && !sends_all_files) sends_all_files = true;
        else if (code === 'changed_elsewhere') await this.#join(id, epoch, unsent);
        else throw error;
      }
    }
    throw new Failure(503, { message: 'Another browser changes this conversation all the time.' });
  }

  async #save({ conversation, edit, record }: Unsent, epoch: string, sends_all_files: boolean): Promise<void> {
    const { id } = conversation;
    const { files } = withoutFiles(conversation);
    const there = new Set(sends_all_files ? [] : record?.files);
    for (const [file, data] of files) if (!there.has(file)) await this.#server.sendFile(id, file, data);
    const { version } = await this.#server.save(conversation, record?.version ?? 0);
    await sync_store.sent(this.#owner, { id, epoch, version, sent_edit: edit, files: [...files.keys()] });
    this.#lines.set(id, { ...lineOf(conversation), version });
  }

  /** Another browser was faster: what it saved is joined with what is here. */
  async #join(id: string, epoch: string, { conversation: own }: Unsent): Promise<void> {
    const { conversation, version, files } = await this.#server.read(id, own);
    await sync_store.takeOver(this.#owner, { ...conversation, id }, { epoch, version, files });
    announceEverywhere({ owner: this.#owner, kind: 'saved', ids: [id] });
  }

  #fail(error: unknown, what: Changed | undefined): void {
    const message = error instanceof Error ? error.message : String(error);
    const status = error instanceof Failure ? error.status : 0;
    const code = codeOf(error);
    if (ending_codes.includes(code ?? '')) {
      if (this.#state) this.#state = { ...this.#state, is_on: false };
      this.#begin(undefined);
      return this.#report(nothing_to_send);
    }
    this.#report({ left: 0, problem: message });
    const is_final = what !== undefined && status >= 400 && status < 500 && status !== 401 && status !== 429;
    if (is_final) this.#refused.set(what.id, { edit: what.edit, message });
    this.#later(is_final ? 0 : retry_ms);
  }

  #later(ms: number): void {
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.#inTurn(() => this.#sendNext()).catch((error: unknown) => this.#fail(error, undefined));
    }, ms);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  #report(sending: Sending): void {
    this.#sending = sending;
    this.#changed();
  }

  #changed(): void {
    for (const hear of this.#listeners) hear();
  }
}

type Changed = { id: string; edit: string | undefined };

const deleted_code = 'deleted_elsewhere';

/** Switched off in another browser, forbidden by the operator, or another person is signed in by now. */
const ending_codes = ['conversations_off', 'conversations_not_offered', 'another_person'];

function codeOf(error: unknown): string | undefined {
  return error instanceof Failure ? error.code : undefined;
}

const synchronisers = new Map<string, Synchroniser>();

type Place = { base: string; person: string; is_allowed: boolean };

/** Returns the one of this owner, which goes on after the page was left. */
export function synchroniserOf(owner: string, { base, person, is_allowed }: Place): Synchroniser {
  const synchroniser = synchronisers.get(owner) ?? new Synchroniser(owner, base, person);
  synchroniser.is_allowed = is_allowed;
  synchronisers.set(owner, synchroniser);
  return synchroniser;
}
