import type { JsonObject } from '../../catalog/model.ts';
import type { RequestState } from '../codec.ts';
import { isObject, memberOf, mistake, readBoolean, readText } from '../fields.ts';
import { isReference } from './head.ts';

/** Reads what a request says of what is kept. Throws ApiError 400 naming the field. */
export function readState(body: JsonObject): RequestState {
  const previous_response_id = readText(body, 'previous_response_id', 'previous_response_id');
  const conversation_id = readConversation(body);
  if (previous_response_id !== undefined && conversation_id !== undefined)
    throw mistake('previous_response_id', 'must not be used beside conversation', 'mutually_exclusive_parameters');
  const input = inputOf(body);
  const references = new Map(
    input.flatMap((item, index): [number, string][] => {
      const { id } = item;
      return isReference(item) && typeof id === 'string' ? [[index, id]] : [];
    }),
  );
  const store = readBoolean(body, 'store', 'store') ?? true;
  const named = [previous_response_id, conversation_id, ...references.values()];
  if (named.some((id) => id?.includes('\0'))) throw mistake('input', 'names what is kept by an id that has a NUL');
  const background = readBoolean(body, 'background', 'background') ?? false;
  if (background && !store)
    throw mistake('store', 'must be true for a response in the background, which is fetched later');
  return { store, background, previous_response_id, conversation_id, input, references };
}

function readConversation(body: JsonObject): string | undefined {
  const conversation = memberOf(body, 'conversation');
  if (!isObject(conversation)) return readText(body, 'conversation', 'conversation');
  const id = readText(conversation, 'id', 'conversation.id');
  if (id === undefined) throw mistake('conversation.id', 'is required');
  return id;
}

/** Items that are no objects are refused later, with their place. */
function inputOf(body: JsonObject): JsonObject[] {
  const input = memberOf(body, 'input');
  if (typeof input === 'string')
    return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }];
  return Array.isArray(input) && input.every(isObject) ? input : [];
}
