import { mergedConversation } from './merge.ts';
import { lineOf, type ConversationLine, type SavedConversation } from './saved-conversation.ts';
import { withFileIds } from './server/portable.ts';
import { inTransaction, StoreProblem, type StoredContent, type SyncRecord, type Tables } from './tables.ts';
import { newId } from './thread.ts';

/** Conversations in this browser: those of one person in one account have one owner. */

/** A line with what the server has of it. `version`: the one that this browser has seen; undefined: none. */
export type LocalLine = ConversationLine & { version: number | undefined; is_sent: boolean };

/** `removed`: deleted here, and not yet on the server. */
export type LocalList = { lines: LocalLine[]; removed: ReadonlySet<string> };

const nothing_sent = { version: 0, sent_edit: undefined, files: [], is_removed: false };

export const browser_store = {
  list: (owner: string): Promise<LocalList> =>
    inTransaction('readonly', async ({ lines, sync }) => {
      const [stored, records] = [await lines.ofOwner(owner), await sync.ofOwner(owner)];
      const by_id = new Map(records.map((record) => [record.id, record]));
      return {
        lines: stored.map(({ edit, ...line }) => {
          const record = by_id.get(line.id);
          return { ...line, version: record?.version, is_sent: record !== undefined && record.sent_edit === edit };
        }),
        removed: new Set(records.filter(({ is_removed }) => is_removed).map(({ id }) => id)),
      };
    }),

  load: (owner: string, id: string): Promise<SavedConversation | undefined> =>
    inTransaction('readonly', async ({ contents }) => {
      const stored = await contents.get(id);
      return stored?.owner === owner ? stored.conversation : undefined;
    }),

  /** Saves it with what another tab may have added to it, and returns both. */
  save: (owner: string, conversation: SavedConversation): Promise<SavedConversation> =>
    inTransaction('readwrite', async (tables) => {
      const before = await tables.contents.get(conversation.id);
      if (before && before.owner !== owner)
        throw new StoreProblem('This conversation is of another account. Begin a new one here.');
      const both = before ? mergedConversation(conversation, before.conversation) : conversation;
      const complete = withFileIds(both, before?.conversation);
      await put(tables, { id: both.id, owner, conversation: complete, edit: newId() });
      return complete;
    }),

  rename: (owner: string, id: string, title: string): Promise<void> =>
    inTransaction('readwrite', async (tables) => {
      const stored = await tables.contents.get(id);
      if (stored?.owner !== owner) return;
      const conversation = { ...stored.conversation, title, is_named: true, named_at: Date.now() };
      await put(tables, { ...stored, conversation, edit: newId() });
    }),

  /** With an `epoch`, and where the server has had one, they are deleted there, too, once that can be. */
  remove: (owner: string, ids: readonly string[], epoch?: string): Promise<void> =>
    inTransaction('readwrite', async (tables) => {
      for (const id of ids) {
        const [line, record] = [await tables.lines.get(id), await tables.sync.get(id)];
        if (line && line.owner !== owner) continue;
        await tables.lines.delete(id);
        await tables.contents.delete(id);
        const removed_in = epoch ?? record?.epoch;
        if (removed_in === undefined) continue;
        await tables.sync.put({ ...nothing_sent, ...record, id, owner, epoch: removed_in, is_removed: true });
      }
    }),
};

/** A conversation that is to be sent, and what the server had of it before. */
export type Unsent = { conversation: SavedConversation; edit: string | undefined; record: SyncRecord | undefined };

/** The state of what is on the server, beside the conversations. */
export const sync_store = {
  /** Returns ids of those that the server lacks in their last state, and of those to be deleted there. */
  unsent: (
    owner: string,
    epoch: string,
  ): Promise<{ changed: { id: string; edit: string | undefined }[]; removed: string[] }> =>
    inTransaction('readonly', async ({ lines, sync }) => {
      const records = await sync.ofOwner(owner);
      const by_id = new Map(records.filter((record) => record.epoch === epoch).map((record) => [record.id, record]));
      const changed = (await lines.ofOwner(owner)).filter(({ id, edit }) => {
        const record = by_id.get(id);
        return !record || record.sent_edit === undefined || record.sent_edit !== edit;
      });
      const removed = records.filter((record) => record.is_removed && record.epoch === epoch);
      return { changed: changed.map(({ id, edit }) => ({ id, edit })), removed: removed.map(({ id }) => id) };
    }),

  begin: (owner: string, id: string, epoch: string): Promise<Unsent | undefined> =>
    inTransaction('readwrite', async (tables) => {
      const [stored, record] = [await tables.contents.get(id), await tables.sync.get(id)];
      if (stored?.owner !== owner) return undefined;
      const conversation = withFileIds(stored.conversation);
      const edit = stored.edit ?? newId(); // an older version of the page stored it
      if (stored.edit === undefined || conversation !== stored.conversation)
        await put(tables, { ...stored, conversation, edit });
      return { conversation, edit, record: record?.epoch === epoch ? record : undefined };
    }),

  /** Notes that the server has this edit. One that was deleted here meanwhile is to be deleted there. */
  sent: (owner: string, record: Omit<SyncRecord, 'owner' | 'is_removed'>): Promise<void> =>
    inTransaction('readwrite', async ({ contents, sync }) => {
      const is_removed = (await contents.get(record.id)) === undefined;
      await sync.put({ ...record, owner, is_removed });
    }),

  /**
   * Takes over what the server has: in the place of what is here, if that was sent; else joined with it, to be sent.
   * Undefined for one that was deleted here.
   */
  takeOver: (
    owner: string,
    theirs: SavedConversation,
    { epoch, version, files }: Pick<SyncRecord, 'epoch' | 'version' | 'files'>,
  ): Promise<SavedConversation | undefined> =>
    inTransaction('readwrite', async (tables) => {
      const { id } = theirs;
      const [stored, record] = [await tables.contents.get(id), await tables.sync.get(id)];
      if (record?.is_removed) return undefined;
      if (stored && stored.owner !== owner) return undefined;
      const is_sent = record?.epoch === epoch && record.sent_edit !== undefined && record.sent_edit === stored?.edit;
      const edit = newId();
      const conversation = stored && !is_sent ? mergedConversation(stored.conversation, theirs) : theirs;
      await put(tables, { id, owner, conversation, edit });
      const sent_edit = stored && !is_sent ? undefined : edit;
      await tables.sync.put({ id, owner, epoch, version, files, sent_edit, is_removed: false });
      return conversation;
    }),

  /** Removes copies of what was deleted elsewhere. Returns the ids of those that were here. */
  drop: (owner: string, ids: readonly string[]): Promise<string[]> =>
    inTransaction('readwrite', async ({ lines, contents, sync }) => {
      const dropped: string[] = [];
      for (const id of ids) {
        const line = await lines.get(id);
        if (line && line.owner !== owner) continue;
        if (line) dropped.push(id);
        await Promise.all([lines.delete(id), contents.delete(id), sync.delete(id)]);
      }
      return dropped;
    }),
};

async function put({ contents, lines }: Tables, stored: StoredContent & { edit: string }): Promise<void> {
  const { owner, conversation, edit } = stored;
  await Promise.all([contents.put(stored), lines.put({ ...lineOf(conversation), owner, edit })]);
}

/** A change in one tab, for the others. */
export type StoreChange = { owner: string; kind: 'saved' | 'removed'; ids: readonly string[] };

let channel: BroadcastChannel | undefined;

/** One for sending and hearing: so a tab does not hear of its own changes. */
function tabs(): BroadcastChannel | undefined {
  if (typeof BroadcastChannel === 'undefined') return undefined;
  channel ??= new BroadcastChannel('medley-conversations');
  return channel;
}

const here = new Set<(change: StoreChange) => void>();

export function announce(change: StoreChange): void {
  tabs()?.postMessage(change);
}

/** Announces a change that came from the server, in this tab too. */
export function announceEverywhere(change: StoreChange): void {
  announce(change);
  for (const hear of here) hear(change);
}

/** Hears of changes in other tabs and browsers until it is ended. */
export function listen(hear: (change: StoreChange) => void): () => void {
  const from = tabs();
  const onMessage = ({ data }: MessageEvent<StoreChange>) => hear(data);
  from?.addEventListener('message', onMessage);
  here.add(hear);
  return () => {
    from?.removeEventListener('message', onMessage);
    here.delete(hear);
  };
}
