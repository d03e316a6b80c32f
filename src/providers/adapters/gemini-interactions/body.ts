import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import { fileOf } from '../../http/multipart.ts';
import { objectsIn, textIn, textsOf } from '../../http/reading.ts';
import type { RunRequest } from '../../provider.ts';
import { isBackground, type InteractionsUpstream } from './upstream.ts';

/** `CreateModelInteraction` of the official client. An interaction that nobody asks for later is not stored there. */
export function bodyOf(upstream: InteractionsUpstream, run: RunRequest): JsonObject {
  const { model, options, events_url } = run;
  const generation_config = configOf(run);
  return {
    model,
    input: inputOf(run.input),
    response_format: formatOf(upstream, run),
    ...(Object.keys(generation_config).length > 0 && { generation_config }),
    ...(isBackground(run) ? { background: true } : { store: false }),
    ...(options['webhooks'] === true && events_url !== undefined && { webhook_config: { uris: [events_url] } }),
  };
}

const file_kinds = ['image', 'video', 'audio'] as const;

/** One text as it is; files and several texts as contents; what has a speaker or a style as a step with notes. */
function inputOf(input: JsonObject): Json {
  const files = file_kinds.flatMap((type) =>
    textsOf(input[type]).map((value): JsonObject => {
      const { content_type, bytes } = fileOf(type, value);
      return { type, data: bytes.toString('base64'), mime_type: content_type };
    }),
  );
  const turns = turnsOf(input);
  const [first] = turns;
  const has_notes = turns.some(({ annotations }) => annotations !== undefined);
  if (files.length === 0 && turns.length < 2 && !has_notes) return first?.['text'] ?? '';
  const content = [...files, ...turns];
  return has_notes ? [{ type: 'user_input', content }] : content;
}

/** Texts that are said or drawn, each with its speaker and its style. */
function turnsOf(input: JsonObject): JsonObject[] {
  const text = textIn(input, 'text') ?? textIn(input, 'prompt');
  const turns = text === undefined ? objectsIn(input, 'turns') : [{ text, style: input['style'] ?? null }];
  return turns.map((turn) => {
    const notes = present(turn, ['speaker', 'style']);
    return {
      type: 'text',
      text: textIn(turn, 'text') ?? '',
      ...(Object.keys(notes).length > 0 && { annotations: [{ type: 'speech_metadata', ...notes }] }),
    };
  });
}

const format_fields = {
  video: ['aspect_ratio', 'resolution'],
  audio: ['mime_type', 'sample_rate', 'bit_rate'],
  image: [],
} as const;

function formatOf({ video_delivery }: InteractionsUpstream, { kind, input, options }: RunRequest): JsonObject {
  const { duration } = input;
  const delivery = options['delivery'] ?? (kind === 'video' ? video_delivery : undefined);
  return {
    type: kind,
    ...present(input, format_fields[kind]),
    ...(kind === 'video' && (duration ?? null) !== null && { duration: durationOf(duration) }),
    ...(delivery !== undefined && { delivery }),
  };
}

/** A duration is a number of seconds with its unit: a bare number is refused. */
function durationOf(duration: Json | undefined): string {
  const text = String(duration);
  return /^\d+(?:\.\d+)?$/.test(text) ? `${text}s` : text;
}

const own_fields: readonly string[] = [
  'prompt',
  'text',
  'style',
  'turns',
  'voice',
  'language',
  'voices',
  'task',
  'duration',
  ...file_kinds,
  ...format_fields.video,
  ...format_fields.audio,
];

function configOf({ input }: RunRequest): JsonObject {
  const { task } = input;
  const voice = present(input, ['voice', 'language']);
  const voices = objectsIn(input, 'voices').map((one) => present(one, ['speaker', 'voice', 'language']));
  const speakers = voices.length > 0 ? voices : [voice].filter((one) => Object.keys(one).length > 0);
  const others = Object.entries(input).filter(([name, value]) => value !== null && !own_fields.includes(name));
  return {
    ...Object.fromEntries(others),
    ...(speakers.length > 0 && { speech_config: speakers }),
    ...(typeof task === 'string' && { video_config: { task } }),
  };
}

/** The members with these names that are not null. */
function present(object: Json | undefined, names: readonly string[]): JsonObject {
  const members = isObject(object) ? Object.entries(object) : [];
  return Object.fromEntries(members.filter(([name, value]) => value !== null && names.includes(name)));
}
