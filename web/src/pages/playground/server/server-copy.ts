import type {
  ConversationChanges,
  ConversationFile,
  StoredConversation,
} from '../../../../../src/dashboard/views/playground.ts';
import { api, Failure, isRecord } from '../../../api.ts';
import { parseJson } from '../json.ts';
import { atRest, lineOf, type ConversationLine, type SavedConversation } from '../saved-conversation.ts';
import { withFiles, withoutFiles } from './portable.ts';

/**
 * Requests about the copies of conversations on the server. `base`: the beginning of the account's paths. Each names the
 * person: somebody else may have signed in meanwhile, in another tab.
 */
export function serverCopy(base: string, person: string) {
  const whose = `person=${encodeURIComponent(person)}`;
  const at = (id: string) => `${base}/conversations/${id}?${whose}`;
  const fileAt = (id: string, file: string) => `${base}/conversations/${id}/files/${file}?${whose}`;
  return {
    changes: (since: number) => api.get<ConversationChanges>(`${base}/conversations?${whose}&since=${since}`),

    choose: (choice: { is_on: boolean; remove?: boolean }) => api.put(`${base}/conversations?${whose}`, choice),

    /** Reads one; files that `at_hand` has are not loaded again. */
    read: async (id: string, at_hand: SavedConversation | undefined) => {
      const { version, turns } = await api.get<StoredConversation>(at(id));
      const light = conversationIn(turns);
      if (!light) throw new Failure(0, { message: 'This conversation on the server cannot be read by this page.' });
      const loadFile = (file: string) =>
        api.get<ConversationFile>(fileAt(id, file)).then(
          ({ data }) => data,
          (error: unknown) => {
            if (error instanceof Failure && error.status === 404) return ''; // lost: the words are still there
            throw error;
          },
        );
      const conversation = atRest(await withFiles(light, at_hand, loadFile));
      return { version, files: [...withoutFiles(conversation).files.keys()], conversation };
    },

    sendFile: (id: string, file: string, data: string) => api.put(fileAt(id, file), { data }),

    save: (conversation: SavedConversation, version: number) => {
      const { light, files } = withoutFiles(conversation);
      return api.put<{ version: number }>(at(conversation.id), {
        version,
        line: JSON.stringify(lineOf(light)),
        turns: turnsOf(light),
        files: [...files.keys()],
      });
    },

    remove: (id: string) => api.delete(at(id)),
  };
}

export type ServerCopy = ReturnType<typeof serverCopy>;

/** JSON has no undefined, and a setting without a value is another one than one that is missing. */
function turnsOf(conversation: SavedConversation): string {
  const { max_tokens = null, temperature = null, ...settings } = conversation.settings;
  return JSON.stringify({ ...conversation, settings: { ...settings, max_tokens, temperature } });
}

function conversationIn(turns: string): SavedConversation | undefined {
  const read = parseJson(turns);
  if (!isConversation(read)) return undefined;
  const { max_tokens, temperature, ...settings } = read.settings;
  return {
    ...read,
    settings: { ...settings, max_tokens: max_tokens ?? undefined, temperature: temperature ?? undefined },
  };
}

/** Only this page wrote it: its version is that of what is looked at. */
function isConversation(value: unknown): value is SavedConversation {
  return (
    isRecord(value) && isRecord(value['threads']) && isRecord(value['settings']) && typeof value['id'] === 'string'
  );
}

export function lineIn(text: string | null): ConversationLine | undefined {
  const read: unknown = text === null ? undefined : JSON.parse(text);
  return isLine(read) ? read : undefined;
}

function isLine(value: unknown): value is ConversationLine {
  return isRecord(value) && typeof value['title'] === 'string' && Array.isArray(value['models']);
}
