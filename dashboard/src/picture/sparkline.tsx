interface Props {
  /** The oldest first; null: not known, a gap. */
  readonly values: readonly (number | null)[];
  /** Words for what the line shows and how it stands, for those who cannot see it. */
  readonly name: string;
  readonly kind: 'line' | 'bars';
}

/**
 * Minimum of values that a line has room for. Fewer begin at the right, so that the first ones already look like
 * what they are.
 */
const ROOM_MIN = 12;

const WIDTH = 60;
const HEIGHT = 16;

/** A number's last minutes, without an axis: only how it moves. */
export function Sparkline({ values, name, kind }: Props) {
  const top = Math.max(1, ...values.map((value) => value ?? 0));
  const step = WIDTH / Math.max(ROOM_MIN, values.length);
  const x0 = WIDTH - values.length * step;
  let path = '';
  let isOpen = false;
  for (const [i, value] of values.entries()) {
    const x = (x0 + i * step).toFixed(1);
    const height = ((value ?? 0) / top) * (HEIGHT - 2);
    if (kind === 'bars') {
      if (value !== null && value > 0) path += `M${x} ${HEIGHT}v-${Math.max(2, height).toFixed(1)}`;
    } else if (value !== null) {
      path += `${isOpen ? 'L' : 'M'}${x} ${(HEIGHT - 1 - height).toFixed(1)}`;
    }
    isOpen = value !== null;
  }
  return (
    <svg
      class={`sparkline ${kind}`}
      role="img"
      aria-label={name}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      <path class="base" d={`M0 ${HEIGHT - 0.5}h${WIDTH}`} />
      <path d={path} />
    </svg>
  );
}
