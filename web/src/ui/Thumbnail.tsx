import { Center, Stack, Text } from '@mantine/core';
import { DocumentTextIcon, FilmIcon, MusicalNoteIcon, PhotoIcon } from '@heroicons/react/24/outline';
import { type CSSProperties, useState } from 'react';
import type { FileView } from '../../../src/dashboard/views/activity.ts';

const icons = { image: PhotoIcon, video: FilmIcon, audio: MusicalNoteIcon, text: DocumentTextIcon };

/** A thumbnail of a result; where there is none, its kind and its length. */
export function Thumbnail({
  file,
  size = 44,
  label,
}: {
  file: FileView | undefined;
  /** The length of a side in pixels, or as wide as the place. */
  size?: number | '100%';
  label: string;
}) {
  const frame = {
    width: size,
    aspectRatio: '1',
    borderRadius: 8,
    background: 'var(--medley-line)',
    overflow: 'hidden',
    flexShrink: 0,
  };
  const source = file?.thumbnails?.[typeof size === 'number' && size <= 64 ? 'small' : 'large'];
  const [failed, setFailed] = useState<string>();
  if (file === undefined || source === undefined || source === failed) return <KindTile file={file} frame={frame} />;
  const sides = typeof size === 'number' ? { width: size, height: size } : { width: 320, height: 320 };
  const fit = file.type === 'audio' ? 'contain' : 'cover';
  return (
    <img
      src={source}
      alt={label}
      loading="lazy"
      decoding="async"
      {...sides}
      onError={() => setFailed(source)}
      style={{ ...frame, height: typeof size === 'number' ? size : 'auto', objectFit: fit, display: 'block' }}
    />
  );
}

function KindTile({ file, frame }: { file: FileView | undefined; frame: CSSProperties }) {
  const Icon = file ? icons[file.type] : undefined;
  return (
    <Center style={frame}>
      {Icon ? (
        <Stack gap={0} align="center">
          <Icon width={20} aria-hidden />
          {file?.duration !== undefined && (
            <Text size="10px" c="dimmed" className="figure">
              {lengthText(file.duration)}
            </Text>
          )}
        </Stack>
      ) : (
        <Text size="xs" c="dimmed">
          –
        </Text>
      )}
    </Center>
  );
}

/** `0:08`, `12:05`. */
function lengthText(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
