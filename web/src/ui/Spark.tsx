import { Box, Tooltip, VisuallyHidden } from '@mantine/core';

type Bar = { label: string; value: number; text: string };

/** Small bars for a trend: one per day, with a sentence for who cannot see them. */
export function Spark({ bars, summary, height = 56 }: { bars: Bar[]; summary: string; height?: number }) {
  const most = Math.max(...bars.map(({ value }) => value), 0);
  return (
    <div role="img" aria-label={summary}>
      <Box style={{ display: 'flex', alignItems: 'flex-end', gap: 2, height }} aria-hidden>
        {bars.map(({ label, value, text }) => (
          <Tooltip key={label} label={`${label}: ${text}`} openDelay={80}>
            <Box
              style={{
                flex: 1,
                minWidth: 2,
                height: most > 0 && value > 0 ? `${Math.max(6, (value / most) * 100)}%` : 2,
                borderRadius: 2,
                background: value > 0 ? 'var(--mantine-primary-color-filled)' : 'var(--medley-line)',
              }}
            />
          </Tooltip>
        ))}
      </Box>
      <VisuallyHidden>{summary}</VisuallyHidden>
    </div>
  );
}
