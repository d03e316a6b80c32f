import { error_members, moreOf, objectSchema, type ErrorFormat } from '../../errors.ts';

const { message, type, code, param, request_id } = error_members;
const orNull = (member: object) => ({ anyOf: [member, { type: 'null' }] });

/** Errors as the SDKs of chat completions read them, which have other calls too. */
export const completions_errors: ErrorFormat = {
  name: 'CompletionsError',
  schema: {
    ...objectSchema({ error: objectSchema({ message, type, param: orNull(param), code: orNull(code), request_id }) }),
    description: 'An error in the chat-completions style.',
  },
  render: (error, id) => {
    const { extras, message: text, type: kind } = error;
    return {
      error: {
        message: text,
        type: kind,
        param: extras.param ?? null,
        code: extras.code ?? null,
        ...moreOf(error),
        request_id: id,
      },
    };
  },
};
