import { Type } from 'typebox';
import { error_members, moreOf, type ErrorFormat } from '../../errors.ts';

const { message, type, request_id } = error_members;

/** Errors as the SDKs of chat completions read them, which have other calls too. */
export const completions_errors: ErrorFormat = {
  name: 'CompletionsError',
  schema: Type.Object(
    {
      error: Type.Object({
        message,
        type,
        param: Type.Union([Type.String(), Type.Null()]),
        code: Type.Union([Type.String(), Type.Null()]),
        request_id,
      }),
    },
    { description: 'An error in the chat-completions style.' },
  ),
  render: (error, id) => {
    const { code, param } = error.extras;
    const { message: text, type: kind } = error;
    return {
      error: { message: text, type: kind, param: param ?? null, code: code ?? null, ...moreOf(error), request_id: id },
    };
  },
};
