import { Type } from 'typebox';
import { duration, section } from './schema-parts.ts';

/** Answers of the responses style that are kept. */
export const responses = section(
  {
    keep: Type.Optional(
      duration('3650d', {
        description: 'Time for which they are kept; 0d keeps none. Conversations: since their last use.',
        default: '30d',
      }),
    ),
    response_mb_max: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 32, description: 'The largest one, with its input.', default: 8 }),
    ),
    account_mb_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'All of an account together, compressed: the oldest go first. As much for conversations.',
        default: 1_000,
      }),
    ),
  },
  { description: 'Answers and conversations of the responses style, which callers continue by their ids.' },
);
