import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import type { ChatStyle } from '../../../../src/dashboard/views/playground.ts';
import { newId } from './thread.ts';
import type { AttachedFile, Attachment, AttachmentKind } from './turn.ts';

/** The size of all files of a conversation: a call may have 32 MB, and base64 makes three bytes four. */
export const attached_max_bytes = 20_000_000;

const accepted: Record<AttachmentKind, string[]> = {
  image: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  document: ['application/pdf', 'text/plain', 'text/markdown', 'text/csv'],
  audio: ['audio/wav', 'audio/mpeg'],
};

/** Names of the abilities of models that take such a file. */
const abilities: Record<AttachmentKind, string[]> = {
  image: ['images', 'image', 'vision', 'image_input'],
  document: ['documents', 'files', 'pdf', 'document_input'],
  audio: ['audio', 'audio_input'],
};

const kinds = ['image', 'document', 'audio'] as const;

/** Which files every one of these models takes in this style; one that tells nothing of itself may take any. */
export function takenBy(models: readonly ModelView[], style: ChatStyle): AttachmentKind[] {
  const can = (kind: AttachmentKind) => (model: ModelView) =>
    model.capabilities.length === 0 || model.capabilities.some((one) => abilities[kind].includes(one));
  return kinds.filter((kind) => models.every(can(kind)) && !(kind === 'audio' && style === 'messages'));
}

/** Returns the `accept` of the button that chooses files. */
export function acceptOf(taken: readonly AttachmentKind[]): string {
  return taken.flatMap((kind) => accepted[kind]).join(',');
}

/** Throws an Error with what is wrong with the file. */
export async function attach(file: File, taken: readonly AttachmentKind[]): Promise<AttachedFile> {
  const type = file.type === '' ? 'application/octet-stream' : file.type;
  const kind = taken.find((each) => accepted[each].includes(type));
  if (!kind) throw new Error(`${file.name}: files of the type ${type} are not accepted.`);
  const url = await dataUrlOf(file);
  return {
    id: newId(),
    kind,
    name: file.name,
    media_type: type,
    data: url.slice(url.indexOf(',') + 1),
    size_bytes: file.size,
  };
}

function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(String(reader.result)));
    reader.addEventListener('error', () => reject(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(file);
  });
}

export function dataUrl({ media_type, data }: AttachedFile): string {
  return `data:${media_type};base64,${data}`;
}

export function sizeOf(files: readonly Attachment[]): number {
  return files.reduce((sum, file) => sum + (file.kind === 'link' ? 0 : file.size_bytes), 0);
}
