import { Type, type Static } from 'typebox';
import { mapOf, model_name, section, text } from './schema-parts.ts';

/** Names of the operator's for several chat models. */

const weighted_model = section(
  {
    model: Type.String({ ...model_name, description: 'Id of a chat model.' }),
    weight: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000,
        default: 1,
        description: 'Its part of the conversations, beside the weights of the others. 0: none.',
      }),
    ),
  },
  { description: 'A model, and its part of the conversations.' },
);

const alias = section(
  {
    name: Type.Optional(text({ description: 'Name for people. Default: the alias.' })),
    description: Type.Optional(Type.String({ maxLength: 4000, description: 'A sentence or two for people.' })),
    models: Type.Array(weighted_model, {
      minItems: 1,
      maxItems: 16,
      description: 'A conversation stays with one of them.',
    }),
    fallbacks: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Whether the other models are asked, in their order, if that of the conversation does not answer.',
      }),
    ),
  },
  { description: 'The models behind a name.' },
);

export const aliases = mapOf(model_name, alias, {
  description: 'Names that callers may send as `model`, each for one or several chat models.',
});

export type AliasEntry = Static<typeof alias>;
