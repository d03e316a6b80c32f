import { Type } from 'typebox';
import { patterns_max } from '../accounts/content-rules.ts';
import { personal_data } from '../lib/personal-data.ts';
import { duration, section } from './schema-parts.ts';

/** Contents of chat calls, which are stored for keys that say so. */
export const content_log = section(
  {
    allowed: Type.Optional(
      Type.Boolean({
        description: 'Keys may store the content of their chat calls. false: none does, and what is stored goes.',
        default: true,
      }),
    ),
    keep_max: Type.Optional(
      duration('3650d', { description: 'The longest time for which a key may keep contents.', default: '90d' }),
    ),
    call_kb_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 4_096,
        description: 'Characters of a request, in thousands, and as many of its answer: longer texts are cut.',
        default: 256,
      }),
    ),
    account_mb_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'All of an account together, compressed: the oldest go first.',
        default: 1_000,
      }),
    ),
    redact: Type.Optional(
      Type.Array(Type.Enum([...personal_data]), {
        description: 'Kinds of data that are replaced in the contents of all keys, whatever their rules say.',
        default: [],
      }),
    ),
    traces: Type.Optional(
      Type.Boolean({
        description: 'The redacted contents go to the collector of traces, too, in the spans of their calls.',
        default: false,
      }),
    ),
    patterns: Type.Optional(
      Type.Array(
        Type.String({
          format: 'wildcard',
          maxLength: 60,
          errorMessage: 'must be a pattern such as "EMP-####": 3 to 30 characters beside "*" and spaces',
        }),
        {
          maxItems: patterns_max,
          description: 'Texts that are replaced, too: # is a digit, ? a letter or digit, * characters without a space.',
          default: [],
        },
      ),
    ),
  },
  { description: 'Contents of chat calls: stored for keys whose rules say so, redacted and encrypted.' },
);
