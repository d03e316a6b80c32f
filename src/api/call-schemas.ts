import Type from 'typebox';

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
