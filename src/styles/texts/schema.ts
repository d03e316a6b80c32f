/** The body of `/v1/completions` as JSON Schema: what the service itself looks at. */
export const text_body = {
  type: 'object',
  required: ['model', 'prompt'],
  properties: {
    model: { type: 'string', description: 'Model id.' },
    prompt: {
      anyOf: [
        { type: 'string' },
        { type: 'array', items: { type: 'string' } },
        { type: 'array', items: { type: 'integer', minimum: 0 } },
        { type: 'array', items: { type: 'array', items: { type: 'integer', minimum: 0 } } },
      ],
      description: 'The text to go on from, several of them, or the tokens of either.',
    },
    suffix: { type: 'string', description: 'What comes after the text that is written.' },
    echo: { type: 'boolean', description: 'Repeat the prompt before the text.' },
    logprobs: {
      type: 'integer',
      minimum: 0,
      description: 'The probability of each token of the text, and of so many others in its place.',
    },
    n: { type: 'integer', minimum: 1, description: 'Number of texts for each prompt.' },
    max_tokens: { type: 'integer', minimum: 1, description: 'Maximum output tokens of each text.' },
    stop: { description: 'A text to stop at, or several.' },
    stream: { type: 'boolean', description: 'Answer as server-sent events.' },
  },
};
