import Type from 'typebox';

/** Bodies of the media paths whose form is that of SDKs, as JSON Schema: the parameters that are understood. */

const model = Type.String({ description: 'Model id.' });
const file = (description: string) => Type.String({ format: 'binary', description });
const free = { additionalProperties: true } as const; // fields of the model's own

const ours = {
  metadata: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Echoed in the task.' })),
  webhook_url: Type.Optional(Type.String({ format: 'uri', description: 'Receives a POST when the task is final.' })),
};

const stream = Type.Optional(
  Type.Boolean({ description: 'Answer as server-sent events, which come together once the result is there.' }),
);

const image = {
  stream,
  partial_images: Type.Optional(Type.Integer({ minimum: 0, maximum: 3, description: 'None are sent.' })),
  n: Type.Optional(Type.Integer({ minimum: 1, description: 'Number of images.', default: 1 })),
  size: Type.Optional(Type.String({ description: '`auto`, or width and height.', examples: ['1024x1024'] })),
  quality: Type.Optional(Type.String()),
  background: Type.Optional(Type.String()),
  output_format: Type.Optional(Type.String({ description: 'png, jpeg or webp, if the model has a choice.' })),
  response_format: Type.Optional(Type.Enum(['url', 'b64_json'], { description: 'Without it, the answer has both.' })),
  user: Type.Optional(Type.String({ description: 'Ignored.' })),
  ...ours,
};

export const images_body = Type.Object({ model, prompt: Type.String({ minLength: 1 }), ...image }, free);

const reference = Type.Object({
  image_url: Type.Optional(Type.String({ description: 'A link or a data URL.' })),
  file_id: Type.Optional(Type.String({ description: 'Of POST /v1/files.' })),
});

export const edits_body = Type.Object(
  {
    model,
    prompt: Type.String(),
    images: Type.Array(reference, { minItems: 1 }),
    mask: Type.Optional(reference),
    ...image,
  },
  free,
);

export const edits_form = Type.Object(
  {
    model,
    prompt: Type.String(),
    image: file('The image; several as `image[]`.'),
    mask: Type.Optional(file('The area that may change.')),
    ...image,
  },
  free,
);

export const variations_form = Type.Object({ model, image: file('The image.'), ...image }, free);

export const images_answer = Type.Object({
  created: Type.Integer({ description: 'Seconds since 1970.' }),
  data: Type.Array(
    Type.Object({
      url: Type.Optional(Type.String({ format: 'uri', description: 'Temporary download link.' })),
      b64_json: Type.Optional(Type.String({ description: 'The file itself.' })),
    }),
  ),
  size: Type.Optional(Type.String({ description: 'Of the first image, measured.' })),
  output_format: Type.String({ description: 'Of the first image, by its bytes.' }),
});

export const speech_body = Type.Object(
  {
    model,
    input: Type.String({ minLength: 1, description: 'The text to speak.' }),
    voice: Type.Optional(
      Type.Union([Type.String(), Type.Object({ id: Type.String() })], {
        description: 'Ignored by models with one voice.',
      }),
    ),
    instructions: Type.Optional(Type.String({ description: 'Instructions for the voice, if the model accepts them.' })),
    response_format: Type.Optional(
      Type.String({ description: 'mp3, opus, aac, flac or wav, if the model has a choice.' }),
    ),
    speed: Type.Optional(Type.Number()),
    stream_format: Type.Optional(
      Type.Enum(['audio', 'sse'], { description: '`sse` answers events, once the speech is there.' }),
    ),
    ...ours,
  },
  free,
);

export const transcription_form = Type.Object(
  {
    file: file('The recording.'),
    model,
    language: Type.Optional(Type.String()),
    prompt: Type.Optional(Type.String({ description: 'Names and words in the recording.' })),
    response_format: Type.Optional(
      Type.Enum(['json', 'text', 'srt', 'verbose_json', 'vtt'], {
        description: 'One of the formats of the model.',
        default: 'json',
      }),
    ),
    temperature: Type.Optional(Type.Number()),
    stream,
    ...ours,
  },
  free,
);

export const translation_form = Type.Object(
  {
    file: file('The recording.'),
    model,
    prompt: Type.Optional(Type.String({ description: 'Names and words in the recording, in English.' })),
    response_format: Type.Optional(Type.Enum(['json', 'text', 'srt', 'verbose_json', 'vtt'], { default: 'json' })),
    temperature: Type.Optional(Type.Number()),
    ...ours,
  },
  free,
);

export const transcription = Type.Object({ text: Type.String() }, free);

const video_properties = {
  model,
  prompt: Type.Optional(Type.String()),
  seconds: Type.Optional(Type.Union([Type.String(), Type.Number()], { description: 'Length of the video.' })),
  size: Type.Optional(Type.String({ description: 'Width and height.', examples: ['1280x720'] })),
  ...ours,
};

export const videos_body = Type.Object({ ...video_properties, input_reference: Type.Optional(reference) }, free);

export const videos_form = Type.Object(
  { ...video_properties, input_reference: Type.Optional(file('The first image of the video.')) },
  free,
);

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const video = Type.Object(
  {
    id: Type.String({ description: 'That of the task.' }),
    object: Type.Literal('video'),
    model: Type.String(),
    status: Type.Enum(['queued', 'in_progress', 'completed', 'failed']),
    progress: Type.Integer({ minimum: 0, maximum: 100, description: '0, 50 while it runs, 100.' }),
    created_at: Type.Integer(),
    completed_at: nullable(Type.Integer()),
    expires_at: nullable(Type.Integer({ description: 'The time until which the video is kept.' })),
    prompt: nullable(Type.String()),
    seconds: Type.String({ description: 'Measured when it is completed; empty before.' }),
    size: Type.String({ description: 'Measured when it is completed; empty before.' }),
    remixed_from_video_id: Type.Null(),
    error: nullable(Type.Object({ code: Type.String(), message: Type.String() })),
  },
  { description: 'A video task in the form of the SDKs.' },
);
