import type { CollectedSpan } from '../helpers/collector.ts';

const row_height = 26;
const names_width = 330;
const bars_width = 520;
const margin = 16;

/** Returns a trace as SVG: a row for each span, below its parent, with its time as a bar. */
export function drawTrace(spans: readonly CollectedSpan[]): string {
  const rows = inOrder(spans);
  const from = Math.min(...spans.map((span) => ms(span.startTimeUnixNano)));
  const to = Math.max(...spans.map((span) => ms(span.endTimeUnixNano)));
  const x = (time_ms: number) => names_width + ((time_ms - from) / (to - from)) * bars_width;
  const width = names_width + bars_width + 90;
  const height = margin * 2 + rows.length * row_height;
  const lines = rows.map(({ span, depth }, index) => {
    const y = margin + index * row_height;
    const [begin, end] = [ms(span.startTimeUnixNano), ms(span.endTimeUnixNano)];
    const bar = Math.max(2, x(end) - x(begin));
    const took = end - begin;
    const time = took < 10 ? took.toFixed(1) : String(Math.round(took));
    return `<text class="name" x="${margin + depth * 16}" y="${y + 17}">${span.name}</text>
<rect class="${String(span.facts['role'])}" x="${x(begin).toFixed(1)}" y="${y + 5}" width="${bar.toFixed(1)}" height="16" rx="3"/>
<text class="time" x="${(x(begin) + bar + 6).toFixed(1)}" y="${y + 17}">${time} ms</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.time { font-size: 11px; fill: #59636e }
.back { fill: #ffffff }
.api { fill: #2563eb } .worker { fill: #d97706 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .time { fill: #9198a1 } .back { fill: #0d1117 } .api { fill: #60a5fa } .worker { fill: #fbbf24 } }
</style>
<rect class="back" width="${width}" height="${height}" rx="6"/>
${lines.join('\n')}
</svg>
`;
}

function ms(nanoseconds: string): number {
  return Number(BigInt(nanoseconds) / 1_000n) / 1_000;
}

/** Parents before their children, children by their start. */
function inOrder(spans: readonly CollectedSpan[]): { span: CollectedSpan; depth: number }[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const sorted = spans.toSorted((a, b) => ms(a.startTimeUnixNano) - ms(b.startTimeUnixNano));
  const below = (parent: string | undefined, depth: number): { span: CollectedSpan; depth: number }[] =>
    sorted
      .filter(({ parentSpanId }) => (parent === undefined ? !ids.has(parentSpanId ?? '') : parentSpanId === parent))
      .flatMap((span) => [{ span, depth }, ...below(span.spanId, depth + 1)]);
  return below(undefined, 0);
}
