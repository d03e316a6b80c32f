import { encode } from 'uqr';

/** Dark on light whatever the colours of the page, as cameras want it, with the margin of four modules they need. */
export function Qr({ text, label, size = 208 }: { text: string; label: string; size?: number }) {
  const { data, size: modules } = encode(text, { border: 4 });
  const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  return (
    <svg
      role="img"
      aria-label={label}
      width={size}
      height={size}
      viewBox={`0 0 ${modules} ${modules}`}
      shapeRendering="crispEdges"
      style={{ background: '#fff', borderRadius: 8, maxWidth: '100%' }}
    >
      <path d={path} fill="#000" />
    </svg>
  );
}
