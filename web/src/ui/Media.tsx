import { Box, Center, Text } from '@mantine/core';
import { DocumentTextIcon, FilmIcon, MusicalNoteIcon, PhotoIcon } from '@heroicons/react/24/outline';
import type { FileView } from '../../../src/dashboard/views/activity.ts';

const icons = { image: PhotoIcon, video: FilmIcon, audio: MusicalNoteIcon, text: DocumentTextIcon };

/** A thumbnail of a result, or what it is. */
export function Thumbnail({
  file,
  size = 44,
  label,
}: {
  file: FileView | undefined;
  size?: number | string;
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
  if (file?.url !== undefined && file.type === 'image') {
    return <img src={file.url} alt={label} loading="lazy" style={{ ...frame, objectFit: 'cover', display: 'block' }} />;
  }
  if (file?.url !== undefined && file.type === 'video') {
    return (
      <video
        src={`${file.url}#t=0.1`}
        aria-label={label}
        muted
        preload="metadata"
        tabIndex={-1}
        style={{ ...frame, objectFit: 'cover', display: 'block' }}
      />
    );
  }
  const Icon = file ? icons[file.type] : undefined;
  return (
    <Center style={frame}>
      {Icon ? (
        <Icon width={20} aria-hidden />
      ) : (
        <Text size="xs" c="dimmed">
          –
        </Text>
      )}
    </Center>
  );
}

/** A result as large as it can be looked at, or listened to. */
export function Viewer({ file, label }: { file: FileView; label: string }) {
  const { url, type } = file;
  if (url === undefined) {
    return (
      <Center h={200} style={{ background: 'var(--medley-line)', borderRadius: 8 }}>
        <Text c="dimmed">This file is no longer kept.</Text>
      </Center>
    );
  }
  const box = { maxWidth: '100%', maxHeight: '70vh', borderRadius: 8, display: 'block', margin: '0 auto' };
  if (type === 'image') {
    return (
      <a href={url} target="_blank" rel="noreferrer" aria-label={`${label}: open in full size`}>
        <img
          src={url}
          alt={label}
          width={file.width}
          height={file.height}
          style={{ ...box, width: 'auto', height: 'auto' }}
        />
      </a>
    );
  }
  if (type === 'video') return <video src={url} controls preload="metadata" aria-label={label} style={box} />;
  if (type === 'audio')
    return <audio src={url} controls preload="metadata" aria-label={label} style={{ width: '100%' }} />;
  return (
    <Box
      p="md"
      style={{
        background: 'var(--medley-line)',
        borderRadius: 8,
        whiteSpace: 'pre-wrap',
        maxHeight: '60vh',
        overflow: 'auto',
      }}
      tabIndex={0}
    >
      {file.text ?? 'A long text: download it.'}
    </Box>
  );
}

/** `768 × 768, 21 kB`. */
export function fileText({ width, height, duration, size_bytes }: FileView): string {
  const parts = [
    width !== undefined && height !== undefined ? `${width} × ${height}` : undefined,
    duration !== undefined ? `${Math.round(duration * 100) / 100} s` : undefined,
    sizeText(size_bytes),
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

export function sizeText(size_bytes: number): string {
  if (size_bytes < 1_000) return `${size_bytes} B`;
  if (size_bytes < 1_000_000) return `${Math.round(size_bytes / 1_000)} kB`;
  return `${(size_bytes / 1_000_000).toFixed(1)} MB`;
}
