interface SparklineProps {
  /** Oldest first. null is a gap. */
  readonly values: readonly (number | null)[];
  /** Description for screen readers. */
  readonly name: string;
  readonly kind: 'line' | 'bars';
  /** Number of steps at the beginning without data. Absent if there are none. */
  readonly unknown?: number;
}

/** Minimum width in values. Fewer values start at the right, so that early ones keep their final scale. */
const ROOM_MIN = 12;

const WIDTH = 60;
const HEIGHT = 16;

const HATCH = 4;

/** Recent values without an axis. Only the movement matters. */
export function Sparkline({ values, name, kind, unknown = 0 }: SparklineProps) {
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
  const part = values.length === 0 ? 0 : unknown / values.length;
  return (
    <svg
      class={`sparkline ${kind}`}
      role="img"
      aria-label={
        part === 0 ? name : `${name}; ${part === 1 ? 'no data' : 'no data at the beginning'}`
      }
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      <path class="base" d={`M0 ${HEIGHT - 0.5}h${WIDTH}`} />
      {part > 0 && <path class="unknown" d={hatchOf(x0, x0 + unknown * step)} />}
      <path d={path} />
    </svg>
  );
}

/** Hatches a time without data. A line of zeros would look like a time without events. */
function hatchOf(from: number, to: number): string {
  let path = '';
  for (let x = from; x < to - HATCH / 2; x += HATCH) {
    path += `M${x.toFixed(1)} ${HEIGHT}l${HATCH} -${HEIGHT}`;
  }
  return path;
}
