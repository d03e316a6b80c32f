import { error_members, membersOf, objectSchema, type ErrorFormat } from '../../errors.ts';

const { message, type, code, param, request_id } = error_members;

/** Errors as the SDKs of the messages style read them. */
export const messages_errors: ErrorFormat = {
  name: 'MessagesError',
  schema: {
    ...objectSchema({
      type: { type: 'string', const: 'error' },
      error: objectSchema({ type, message, code, param }, ['code', 'param']),
      request_id,
    }),
    description: 'An error in the messages style.',
  },
  request_id_header: 'request-id',
  render: (error, id) => ({ type: 'error', error: membersOf(error), request_id: id }),
};
