import './level.css';

interface LevelProps {
  /** From 0 to 1. Values outside are clamped. */
  readonly part: number;
  readonly isBad: boolean;
}

/** A bar that is partly filled. Screen readers skip it, because the numbers are beside it. */
export function Level({ part, isBad }: LevelProps) {
  const width = `${Math.min(1, Math.max(0, part)) * 100}%`;
  return (
    <span class={isBad ? 'level bad' : 'level'} aria-hidden="true">
      <span style={{ width }} />
    </span>
  );
}
