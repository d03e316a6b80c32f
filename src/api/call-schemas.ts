import Type, { type TSchema } from 'typebox';

/** Bodies of the paths that answer in the call itself, as JSON Schema: what the service itself looks at. */

const inputs_max = 2_048;

export const embeddings_body = Type.Object({
  model: Type.String({ description: 'Model id.', examples: ['sandbox/embedding'] }),
  input: Type.Union(
    [
      Type.String({ minLength: 1 }),
      Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: inputs_max }),
      Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 }),
      Type.Array(Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 }), { minItems: 1, maxItems: inputs_max }),
    ],
    { description: 'A text, a list of texts, the tokens of a text, or a list of these.' },
  ),
  encoding_format: Type.Optional(
    Type.Enum(['float', 'base64'], { description: 'base64: 32-bit floats, little-endian.', default: 'float' }),
  ),
  dimensions: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Length of the vectors, if the model has a choice.' }),
  ),
  user: Type.Optional(Type.String({ description: "The caller's own id for the end user." })),
});

export const embeddings_answer = Type.Object({
  object: Type.Literal('list'),
  model: Type.String(),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      index: Type.Integer(),
      embedding: Type.Union([Type.Array(Type.Number()), Type.String({ description: 'With encoding_format base64.' })]),
    }),
  ),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
});

const documents_max = 10_000;

export const rerank_body = Type.Object({
  model: Type.String({ description: 'Model id.', examples: ['sandbox/rerank'] }),
  query: Type.String({ minLength: 1 }),
  documents: Type.Array(
    Type.Union([Type.String(), Type.Object({ text: Type.String() }, { additionalProperties: true })]),
    { minItems: 1, maxItems: documents_max, description: 'Texts, or objects that have a text.' },
  ),
  top_n: Type.Optional(Type.Integer({ minimum: 1, description: 'Number of results; by default all.' })),
  top_k: Type.Optional(Type.Integer({ minimum: 1, description: 'Another name of `top_n`.' })),
  return_documents: Type.Optional(
    Type.Boolean({ description: 'Each result has its document, as it was given.', default: false }),
  ),
  max_tokens_per_doc: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Longer documents are cut, if the model can do that.' }),
  ),
});

export const rerank_answer = Type.Object({
  object: Type.Literal('list'),
  id: Type.String(),
  model: Type.String(),
  results: Type.Array(
    Type.Object({
      index: Type.Integer({ description: 'Place of the document in the request, from 0.' }),
      relevance_score: Type.Number(),
      document: Type.Optional(Type.Object({ text: Type.String() }, { additionalProperties: true })),
    }),
    { description: 'The most relevant first.' },
  ),
  usage: Type.Optional(Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() })),
  meta: Type.Object({
    api_version: Type.Object({ version: Type.String() }),
    billed_units: Type.Object({
      search_units: Type.Optional(Type.Integer()),
      input_tokens: Type.Optional(Type.Integer()),
    }),
  }),
});

const text_part = Type.Object({ type: Type.Literal('text'), text: Type.String() });
const image_part = Type.Object({
  type: Type.Literal('image_url'),
  image_url: Type.Object({ url: Type.String({ minLength: 1, description: 'https link or data URL.' }) }),
});

export const moderation_body = Type.Object({
  model: Type.Optional(
    Type.String({
      description: 'Model id.',
      examples: ['sandbox/moderation'],
      default: 'omni-moderation-latest',
    }),
  ),
  input: Type.Union(
    [
      Type.String(),
      Type.Array(Type.String(), { minItems: 1, maxItems: inputs_max }),
      Type.Array(Type.Union([text_part, image_part]), { minItems: 1, maxItems: inputs_max }),
    ],
    { description: 'A text, a list of texts, or the parts of one message.' },
  ),
});

const by_category = <Schema extends TSchema>(schema: Schema) => Type.Record(Type.String(), schema);

export const moderation_answer = Type.Object({
  id: Type.String(),
  model: Type.String(),
  results: Type.Array(
    Type.Object(
      {
        flagged: Type.Boolean(),
        categories: by_category(Type.Boolean()),
        category_scores: Type.Optional(by_category(Type.Number())),
        category_applied_input_types: Type.Optional(by_category(Type.Array(Type.String()))),
      },
      { additionalProperties: true },
    ),
    { description: 'One for each text, in its order; one for all parts of a message.' },
  ),
});
