import { Box, Center, Stack, Text } from '@mantine/core';
import { type CSSProperties, useEffect, useState } from 'react';
import type { FileView } from '../../../src/dashboard/views/activity.ts';
import { oneDecimal } from './one-decimal.ts';

/** A result as large as it can be looked at, or listened to. */
export function Viewer({ file, label }: { file: FileView; label: string }) {
  const { url, type, thumbnails } = file;
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
        <FullImage file={file} url={url} label={label} style={{ ...box, width: 'auto', height: 'auto' }} />
      </a>
    );
  }
  if (type === 'video') {
    return (
      <video
        src={url}
        poster={thumbnails?.large}
        width={file.width}
        height={file.height}
        controls
        preload="metadata"
        aria-label={label}
        style={{ ...box, width: 'auto', height: 'auto' }}
      />
    );
  }
  if (type === 'audio') {
    return (
      <Stack gap={4}>
        <Waveform key={thumbnails?.large} source={thumbnails?.large} />
        <audio src={url} controls preload="metadata" aria-label={label} style={{ width: '100%' }} />
      </Stack>
    );
  }
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

/** An image of many megabytes: its thumbnail stands in its place until it is there. */
function FullImage({ file, url, label, style }: { file: FileView; url: string; label: string; style: CSSProperties }) {
  const preview = file.thumbnails?.large;
  const [loaded, setLoaded] = useState<string>();
  useEffect(() => {
    const image = new Image();
    const onLoad = () => setLoaded(url);
    image.addEventListener('load', onLoad);
    image.src = url;
    return () => image.removeEventListener('load', onLoad);
  }, [url]);
  const source = preview === undefined || loaded === url ? url : preview;
  return (
    <img
      src={source}
      alt={label}
      width={file.width}
      height={file.height}
      onError={() => setLoaded(url)}
      style={style}
    />
  );
}

/** Drawn only: the player below it says what there is to hear. */
function Waveform({ source }: { source: string | undefined }) {
  const [failed, setFailed] = useState(false);
  if (source === undefined || failed) return null;
  const style = { width: '100%', height: 72, objectFit: 'fill', display: 'block' } as const;
  return <img src={source} alt="" width={640} height={72} onError={() => setFailed(true)} style={style} />;
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
  return `${oneDecimal(size_bytes / 1_000_000)} MB`;
}
