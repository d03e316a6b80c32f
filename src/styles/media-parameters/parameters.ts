import type { Json, JsonObject, MediaKind } from '../../catalog/model.ts';
import type { ApiError } from '../../errors.ts';
import { nearest as nearestWord } from '../../lib/edit-distance.ts';
import { asField, choicesOf, fieldNamed, isList, refused, textOf, type MappedInput, type Offer } from './offer.ts';
import { carrySize } from './size.ts';

/** The handling of one parameter of a call. */
export type Parameter = {
  /** The fields of the input that it becomes; undefined if the model has none for it. Throws ApiError 400. */
  mapParameter(offer: Offer, value: Json): JsonObject | undefined;
  /** Tells whether the parameter may be ignored if no field takes it. Absent: never. */
  harmless?(value: Json): boolean;
  is_file?: true;
};

export type Parameters = { readonly [name: string]: Parameter };

/** Other values under which a field may know what a parameter asks for, best first. */
type Synonyms = { readonly [value: string]: readonly string[] };

/** A parameter that becomes the first of these fields that the model has. */
function oneOf(
  names: readonly string[],
  more: { synonyms?: Synonyms; harmless?: (value: Json) => boolean } = {},
): Parameter {
  const { synonyms = {}, harmless } = more;
  return {
    mapParameter: (offer, value) => {
      const field = fieldNamed(offer, names);
      return field === undefined ? undefined : carryChoice(offer, field, value, synonyms);
    },
    ...(harmless && { harmless }),
  };
}

/** `auto` is the model's own choice, whether it has the word or not. */
function carryChoice(offer: Offer, field: string, value: Json, synonyms: Synonyms): JsonObject {
  const choices = choicesOf(offer, field);
  if (!choices) return { [field]: asField(offer, field, value) };
  const own = typeof value === 'string' && Object.hasOwn(synonyms, value) ? (synonyms[value] ?? []) : [];
  const match = [value, ...own].map((word) => asField(offer, field, word)).find((word) => choices.includes(word));
  if (match !== undefined) return { [field]: match };
  return value === 'auto' ? {} : { [field]: asField(offer, field, value) };
}

const isOneOf =
  (...values: Json[]) =>
  (value: Json) =>
    values.includes(value) || values.map(String).includes(String(value));
const always = () => true;

const nothing: Parameter = { mapParameter: () => ({}) };

/** Whoever is behind the request is no concern of the upstream. */
const about_the_caller: Parameters = { user: nothing, safety_identifier: nothing };

const file_types: Synonyms = { jpeg: ['jpg'], jpg: ['jpeg'] };
const usual_quality = isOneOf('auto', 'standard', 'medium');

export const image_parameters: Parameters = {
  ...about_the_caller,
  prompt: oneOf(['prompt', 'text', 'description']),
  n: oneOf(['n', 'num_images', 'num_outputs', 'number_of_images'], { harmless: isOneOf(1) }),
  size: { mapParameter: carrySize, harmless: isOneOf('auto', '') },
  quality: oneOf(['quality'], { synonyms: { standard: ['medium'], hd: ['high'] }, harmless: usual_quality }),
  background: oneOf(['background'], { harmless: isOneOf('auto', 'opaque') }),
  output_format: oneOf(['output_format', 'format'], { synonyms: file_types, harmless: isOneOf('png') }),
  output_compression: oneOf(['output_compression', 'output_quality'], { harmless: isOneOf(100) }),
  moderation: oneOf(['moderation'], { harmless: always }), // stricter than asked for, if at all
  style: oneOf(['style'], { harmless: isOneOf('vivid') }),
};

export const edit_parameters: Parameters = {
  ...image_parameters,
  image: files('image', 'image', (name) => !is_mask.test(name)),
  images: files('images', 'image', (name) => !is_mask.test(name)),
  mask: files('mask', 'image', (name) => is_mask.test(name)),
  input_fidelity: oneOf(['input_fidelity'], { harmless: isOneOf('low') }),
};

export const speech_parameters: Parameters = {
  ...about_the_caller,
  input: oneOf(['text', 'input', 'prompt', 'script']),
  // The SDKs do not let their callers leave the voice out: where there is no choice, any will do.
  voice: { mapParameter: carryVoice, harmless: always },
  speed: oneOf(['speed', 'speaking_rate'], { harmless: isOneOf(1) }),
  instructions: oneOf(['instructions', 'style_instructions'], { harmless: isOneOf('') }),
  // What the SDKs mean by default; the answer's content-type tells what it is.
  response_format: oneOf(['output_format', 'response_format', 'audio_format', 'format'], { harmless: isOneOf('mp3') }),
};

function carryVoice(offer: Offer, value: Json): JsonObject | undefined {
  const voice = textOf(value, ['id']);
  if (voice === undefined) throw refused('voice', 'voice must be a text, or an object with the id of a voice.');
  return oneOf(['voice', 'voice_id', 'speaker']).mapParameter(offer, voice);
}

export const transcription_parameters: Parameters = {
  ...about_the_caller,
  file: files('file', 'audio', always),
  language: oneOf(['language', 'language_code']),
  prompt: oneOf(['prompt', 'initial_prompt', 'hint'], { harmless: isOneOf('') }),
  temperature: oneOf(['temperature'], { harmless: isOneOf(0) }),
  chunking_strategy: oneOf(['chunking_strategy'], { harmless: isOneOf('auto') }),
  timestamp_granularities: oneOf(['timestamp_granularities'], {
    harmless: (value) => [value].flat().every((each) => each === 'segment'),
  }),
  response_format: { mapParameter: carryTranscriptForm, harmless: isOneOf('json', 'text') },
};

/** Of a recording in any language, in English. `translate` is what the path asks for. */
export const translation_parameters: Parameters = {
  ...about_the_caller,
  file: files('file', 'audio', always),
  prompt: oneOf(['prompt', 'initial_prompt', 'hint'], { harmless: isOneOf('') }),
  temperature: oneOf(['temperature'], { harmless: isOneOf(0) }),
  response_format: { mapParameter: carryTranscriptForm, harmless: isOneOf('json', 'text') },
  translate: { mapParameter: carryTranslation },
};

/** A model translates if it has a switch for it, a task of that name, or a field for the language. */
function carryTranslation(offer: Offer): JsonObject {
  const { names } = offer.fields;
  if (names.includes('translate')) return { translate: true };
  if (names.includes('task') && choicesOf(offer, 'task')?.includes('translate') === true) return { task: 'translate' };
  if (names.includes('target_language')) return { target_language: 'en' };
  const message = `${offer.model} writes down what is said and does not translate it: use a model with a field translate, task or target_language, or POST /v1/audio/transcriptions.`;
  throw refused('model', message);
}

/** For `json` the words alone are asked for: what the SDKs read of it is made of them. */
function carryTranscriptForm(offer: Offer, value: Json): JsonObject | undefined {
  const synonyms = { text: ['txt', 'json'], vtt: ['webvtt'] };
  const names = ['output_format', 'response_format', 'format'];
  return oneOf(names, { synonyms }).mapParameter(offer, value === 'json' ? 'text' : value);
}

export const video_parameters: Parameters = {
  ...about_the_caller,
  prompt: oneOf(['prompt', 'text', 'description']),
  seconds: { mapParameter: carrySeconds },
  size: { mapParameter: carrySize, harmless: isOneOf('auto', '') },
  quality: oneOf(['quality'], { harmless: usual_quality }),
  input_reference: files('input_reference', 'image', (name) => !is_mask.test(name)),
};

/** Some models list lengths as texts such as `8s`. */
function carrySeconds(offer: Offer, value: Json): JsonObject | undefined {
  return oneOf(['duration', 'seconds', 'duration_seconds', 'video_length', 'length'], {
    synonyms: { [String(value)]: [`${String(value)}s`] },
  }).mapParameter(offer, typeof value === 'number' ? String(value) : value);
}

const is_mask = /mask/i;

/** Of several fields for files, the one that means what is worked on. */
const main_fields =
  /^(?:input_|init_|reference_)?(?:image|images|audio|file)(?:_input|_url|_urls|s)?$|^(?:first|start)_/i;

/** Files become the model's field for files of this kind; several of them one that takes a list. */
function files(parameter: string, kind: MediaKind, isMeant: (field: string) => boolean): Parameter {
  return {
    is_file: true,
    mapParameter: (offer, value) => {
      const names = offer.media.filter((field) => field.kind === kind && isMeant(field.name)).map(({ name }) => name);
      const texts = [value].flat().map((each) => textOf(each, ['image_url', 'file_id', 'url']) ?? each);
      const able = texts.length > 1 ? names.filter((name) => isList(offer, name)) : names;
      const field = able.find((name) => main_fields.test(name)) ?? able[0];
      if (field !== undefined) return { [field]: isList(offer, field) ? texts : (texts[0] ?? null) };
      if (names.length === 0) return undefined;
      throw refused(parameter, `${offer.model} takes one file in ${names.join(' and ')}, and not ${texts.length}.`);
    },
  };
}

/**
 * The input that a call's parameters make. Fields of the model's own go in as they are, and before parameters; what the
 * model has no field for is left out where that changes nothing, else it is ApiError 400 naming the parameter.
 */
export function mapParameter(offer: Offer, parameters: Parameters, others: JsonObject): MappedInput {
  const input = new Map<string, Json>();
  const origins = new Map<string, string>();
  const own = new Map<string, Json>();
  for (const [name, value] of Object.entries(others)) {
    if (value === null) continue;
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    const fields = parameter?.mapParameter(offer, value);
    if (fields) {
      for (const [field, each] of Object.entries(fields)) {
        input.set(field, each);
        origins.set(field, name);
      }
    } else if (offer.fields.names.includes(name)) own.set(name, asField(offer, name, value));
    else if (parameter?.harmless?.(value) !== true) throw notCarried(offer, parameters, name, value);
  }
  return { input: Object.fromEntries([...input, ...own]), origins };
}

function notCarried(offer: Offer, parameters: Parameters, name: string, value: Json): ApiError {
  if (!Object.hasOwn(parameters, name)) {
    const near = nearestWord(name, [...Object.keys(parameters), ...offer.fields.names]);
    const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
    const shown = name.slice(0, 60);
    const message = `${JSON.stringify(shown)} is neither a parameter of this call nor a field of ${offer.model}.${hint}`;
    return refused(shown, message);
  }
  const fields = offer.fields.names.join(', ');
  if (parameters[name]?.is_file === true) return refused(name, `${offer.model} takes no ${name}; it has: ${fields}.`);
  const value_text = typeof value === 'object' ? '' : ` ${JSON.stringify(value).slice(0, 60)}`;
  return refused(name, `${offer.model} cannot be told ${name}${value_text}: leave it out. It has: ${fields}.`);
}
