import { error_members, moreOf, objectSchema, type ErrorFormat } from '../../errors.ts';

const { message, type, request_id } = error_members;
const text_or_null = { anyOf: [{ type: 'string' }, { type: 'null' }] };

/** Errors as the SDKs of chat completions read them, which have other calls too. */
export const completions_errors: ErrorFormat = {
  name: 'CompletionsError',
  schema: {
    ...objectSchema({ error: objectSchema({ message, type, param: text_or_null, code: text_or_null, request_id }) }),
    description: 'An error in the chat-completions style.',
  },
  render: (error, id) => {
    const { code, param } = error.extras;
    const { message: text, type: kind } = error;
    return {
      error: { message: text, type: kind, param: param ?? null, code: code ?? null, ...moreOf(error), request_id: id },
    };
  },
};
