import type { Answered } from '../../helpers/app.ts';
import type { Stage } from '../../chat/setup.ts';
import { sampleImage, wav } from '../../storage/samples.ts';
import { eventsIn, sampleOf } from './asking.ts';
import type { Sample } from './vendor-types.ts';

/** Images, audio, videos, files, uploads, batches, vectors and moderations, as OpenAI's types have them. */

type Fields = { [name: string]: string | { bytes: Buffer; name: string } };

/** A form, as fetch sends it. */
async function form({ test, client }: Stage, path: string, fields: Fields): Promise<Answered> {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') body.append(name, value);
    else body.append(name, new Blob([new Uint8Array(value.bytes)]), value.name);
  const headers = { authorization: `Bearer ${client.key}` };
  const response = await fetch(`${test.url}${path}`, { method: 'POST', headers, body });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: JSON.parse(text.startsWith('{') ? text : '{}'),
  };
}

export async function imageSamples(stage: Stage): Promise<Sample[]> {
  const request = { model: 'sandbox/image', prompt: 'a bicycle', size: '64x64' };
  const generate = (more: object) => stage.client.call('POST', '/v1/images/generations', { ...request, ...more });
  const image = { bytes: await sampleImage('png', 32, 32), name: 'a.png' };
  const edit = (more: Fields = {}) =>
    form(stage, '/v1/images/edits', { model: 'sandbox/edit', prompt: 'at night', image, ...more });
  const type = 'OpenAI.Images.ImagesResponse';
  const streamed = eventsIn(await generate({ stream: true, n: 2 }));
  const edited = eventsIn(await edit({ stream: 'true' }));
  return [
    sampleOf('images', type, await generate({ n: 2 })),
    sampleOf('images as links', type, await generate({ response_format: 'url' })),
    sampleOf('images: edits', type, await edit()),
    ...streamed.map((value) => ({ what: 'images, streamed', type: 'OpenAI.Images.ImageGenStreamEvent', value })),
    ...edited.map((value) => ({ what: 'edits, streamed', type: 'OpenAI.Images.ImageEditStreamEvent', value })),
  ];
}

export async function audioSamples(stage: Stage): Promise<Sample[]> {
  const file = { bytes: wav(1), name: 'a.wav' };
  const write = (more: Fields = {}) =>
    form(stage, '/v1/audio/transcriptions', { model: 'sandbox/transcript', prompt: 'Good morning', file, ...more });
  const streamed = eventsIn(await write({ stream: 'true' }));
  return [
    sampleOf('transcripts', 'OpenAI.Audio.Transcription', await write()),
    sampleOf(
      'transcripts, verbose',
      'OpenAI.Audio.TranscriptionVerbose',
      await write({ response_format: 'verbose_json' }),
    ),
    ...streamed.map((value) => ({
      what: 'transcripts, streamed',
      type: 'OpenAI.Audio.TranscriptionStreamEvent',
      value,
    })),
  ];
}

export async function videoSamples({ client }: Stage): Promise<Sample[]> {
  const created = await client.call('POST', '/v1/videos', {
    model: 'sandbox/video',
    prompt: 'x [[fail]]',
    seconds: '4',
  });
  const { id } = created.json;
  const list = 'import("openai-7/core/pagination").ConversationCursorPageResponse<OpenAI.Videos.Video>';
  const listed = await client.call('GET', '/v1/videos');
  const gone = await client.call('GET', `/v1/videos/${id}`);
  return [
    sampleOf('videos', 'OpenAI.Videos.Video', created),
    sampleOf('videos: read', 'OpenAI.Videos.Video', gone),
    sampleOf('videos: list', list, listed),
  ];
}

const fileIn = ({ text }: Answered) => /file_\w+/.exec(text)?.[0];

const pages = 'import("openai-7/core/pagination")';

export async function fileSamples(stage: Stage): Promise<Sample[]> {
  const { client } = stage;
  const line = {
    custom_id: 'a',
    method: 'POST',
    url: '/v1/embeddings',
    body: { model: 'sandbox/embedding', input: 'x' },
  };
  const file = { bytes: Buffer.from(`${JSON.stringify(line)}\n`), name: 'calls.jsonl' };
  const uploaded = await form(stage, '/v1/files', { purpose: 'batch', file });
  const { id } = uploaded.json;
  const batch = { input_file_id: id, endpoint: '/v1/embeddings', completion_window: '24h' };
  const created = await client.call('POST', '/v1/batches', batch);
  const upload = { purpose: 'user_data', filename: 'a.txt', bytes: 3, mime_type: 'text/plain' };
  const begun = await client.call('POST', '/v1/uploads', upload);
  const part = await form(stage, `/v1/uploads/${begun.json.id}/parts`, {
    data: { bytes: Buffer.from('abc'), name: 'p' },
  });
  const completed = await client.call('POST', `/v1/uploads/${begun.json.id}/complete`, { part_ids: [part.json.id] });
  const other = await client.call('POST', '/v1/uploads', upload);
  const cancelled = await client.call('POST', `/v1/uploads/${other.json.id}/cancel`, {});
  const batches = await client.call('GET', '/v1/batches');
  const files = await client.call('GET', '/v1/files');
  const stopped = await client.call('POST', `/v1/batches/${created.json.id}/cancel`, {});
  return [
    sampleOf('files', 'OpenAI.Files.FileObject', uploaded),
    sampleOf('files: list', `${pages}.CursorPageResponse<OpenAI.Files.FileObject>`, files),
    sampleOf('batches', 'OpenAI.Batches.Batch', created),
    sampleOf('batches: list', `${pages}.CursorPageResponse<OpenAI.Batches.Batch>`, batches),
    ...(stopped.status === 200 ? [sampleOf('batches: cancelled', 'OpenAI.Batches.Batch', stopped)] : []),
    sampleOf('uploads', 'OpenAI.Uploads.Upload', begun),
    sampleOf('uploads: parts', 'OpenAI.Uploads.UploadPart', part),
    sampleOf('uploads: completed', 'OpenAI.Uploads.Upload', completed),
    sampleOf('uploads: cancelled', 'OpenAI.Uploads.Upload', cancelled),
    sampleOf(
      'files: deleted',
      'OpenAI.Files.FileDeleted',
      await client.call('DELETE', `/v1/files/${fileIn(completed)}`),
    ),
  ];
}

export async function vectorSamples({ client }: Stage): Promise<Sample[]> {
  const vectors = { model: 'sandbox/embedding', input: ['a', 'b'] };
  const judged = { model: 'sandbox/moderation', input: ['A cat', 'A fight [[flag violence/graphic]]'] };
  return [
    sampleOf('vectors', 'OpenAI.CreateEmbeddingResponse', await client.call('POST', '/v1/embeddings', vectors)),
    sampleOf('moderations', 'OpenAI.ModerationCreateResponse', await client.call('POST', '/v1/moderations', judged)),
  ];
}
