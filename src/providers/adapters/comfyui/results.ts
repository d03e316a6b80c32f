import { isObject, type Json, type JsonObject, type MediaKind } from '../../../catalog/model.ts';
import { textIn } from '../../http/reading.ts';

/** A file as the outputs of a history name it: `/view` gives it out. */
export type ViewedFile = { filename: string; subfolder: string; type: string };

const endings: readonly [MediaKind, RegExp][] = [
  ['image', /\.(?:png|jpe?g|webp|gif|avif|bmp|tiff?)$/i],
  ['video', /\.(?:mp4|webm|mov|mkv|avi)$/i],
  ['audio', /\.(?:mp3|wav|flac|ogg|opus|m4a|aac)$/i],
];

/**
 * Returns the files of a run: of the named nodes, or of all that save; previews (`temp`) only where nothing is saved.
 * Nodes name theirs `images`, `gifs`, `video`, `audio` and so on. What is by its name of another kind than the run is
 * left out, such as the still beside a video, unless nothing else is there.
 */
export function filesOf(outputs: JsonObject, kind: MediaKind, nodes: readonly string[] | undefined): ViewedFile[] {
  const all = (nodes ?? Object.keys(outputs)).flatMap((node) => filesOfNode(outputs[node]));
  const saved = nodes ? all : all.filter(({ type }) => type === 'output');
  const files = saved.length > 0 ? saved : all.filter(({ type }) => type === 'temp');
  const fitting = files.filter(({ filename }) => {
    const named = endings.find(([, ending]) => ending.test(filename))?.[0];
    return named === undefined || named === kind;
  });
  return fitting.length > 0 ? fitting : files;
}

function filesOfNode(output: Json | undefined): ViewedFile[] {
  const lists = isObject(output) ? Object.values(output).filter(Array.isArray) : [];
  return lists.flat().flatMap((item) => {
    const filename = isObject(item) ? textIn(item, 'filename') : undefined;
    if (!isObject(item) || filename === undefined) return [];
    return [{ filename, subfolder: textIn(item, 'subfolder') ?? '', type: textIn(item, 'type') ?? 'output' }];
  });
}
