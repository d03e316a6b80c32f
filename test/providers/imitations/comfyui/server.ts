import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from '../imitation.ts';
import { partsOf, textsOf } from '../multipart.ts';
import { Machine } from './machine.ts';
import { objectInfo } from './nodes.ts';

export type ComfyUi = Imitation & { machine: Machine };

/** ComfyUI by its server.py: a workflow waits in the queue, is at work, and ends in the history. */
export async function startComfyUi(now?: () => number): Promise<ComfyUi> {
  const [image, video, audio] = await Promise.all([sampleFile('image'), sampleFile('video'), sampleFile('audio')]);
  const machine = new Machine((class_type) => {
    if (class_type === 'VHS_VideoCombine') return { bytes: video, ending: 'mp4' };
    return class_type === 'SaveAudio' ? { bytes: audio, ending: 'wav' } : { bytes: image, ending: 'png' };
  });
  const imitation = await startImitation({ roleOf, answer: (request) => answer(machine, request) }, now);
  return Object.assign(imitation, { machine });
}

/** Paths are there with and without `/api`. */
function pathOf(path: string): string {
  return path.replace(/^\/api(?=\/)/, '');
}

function roleOf({ method, path }: { method: string; path: string }): Role {
  const own = pathOf(path);
  if (method === 'POST' && own === '/prompt') return 'submit';
  if (method === 'POST' && (own === '/queue' || own === '/interrupt')) return 'cancel';
  if (method === 'POST' && own === '/upload/image') return 'upload';
  if (method === 'GET' && own.startsWith('/object_info/')) return 'result';
  if (method === 'GET' && (own === '/queue' || /^\/history\/[^/]+$/.test(own))) return 'poll';
  return method === 'GET' && own === '/view' ? 'file' : 'other';
}

function answer(machine: Machine, request: ReceivedRequest): Reply {
  const { role, path, json } = request;
  switch (role) {
    case 'submit': {
      const submitted = machine.submit(json);
      if (!('run' in submitted)) return { status: 400, json: submitted };
      return { json: { prompt_id: submitted.run.id, number: submitted.run.number, node_errors: {} } };
    }
    case 'poll': {
      if (pathOf(path) === '/queue') return { json: machine.look() };
      const id = path.split('/').at(-1) ?? '';
      const entry = machine.history.get(id);
      return { json: entry ? { [id]: entry } : {} };
    }
    case 'cancel':
      if (pathOf(path) === '/interrupt') machine.interrupt(json['prompt_id']);
      else if (Array.isArray(json['delete'])) machine.dequeue(json['delete']);
      return { text: '' };
    case 'result':
      return { json: objectInfo(decodeURIComponent(path.split('/').at(-1) ?? '')) };
    case 'upload':
      return upload(machine, request);
    case 'file':
      return view(machine, request);
    default:
      return { status: 404, text: '404: Not Found' };
  }
}

function upload(machine: Machine, request: ReceivedRequest): Reply {
  if (machine.is_disk_full) return { status: 500, text: '500 Internal Server Error' };
  const image = partsOf(request).find(({ name }) => name === 'image');
  const { subfolder = '', type = 'input' } = textsOf(request);
  const { filename = '' } = image ?? {};
  if (!image || filename === '' || subfolder.includes('..')) return { status: 400 };
  machine.files.set([type, subfolder, filename].filter((part) => part !== '').join('/'), image.bytes);
  return { json: { name: filename, subfolder, type } };
}

function view(machine: Machine, { query }: ReceivedRequest): Reply {
  const { filename = '', subfolder = '', type = 'output' } = query;
  if (filename === '' || filename.startsWith('/') || filename.includes('..')) return { status: 400 };
  const bytes = machine.files.get([type, subfolder, filename].filter((part) => part !== '').join('/'));
  return bytes ? { bytes, headers: { 'content-disposition': `filename="${filename}"` } } : { status: 404 };
}
