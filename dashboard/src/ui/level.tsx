import './level.css';

interface LevelProps {
  /** From 0 to 1; beyond either end it is shown as that end. */
  readonly part: number;
  readonly isBad: boolean;
}

/** A bar that is filled to a part. The numbers stand beside it, so it says nothing of its own. */
export function Level({ part, isBad }: LevelProps) {
  const width = `${Math.min(1, Math.max(0, part)) * 100}%`;
  return (
    <span class={isBad ? 'level bad' : 'level'} aria-hidden="true">
      <span style={{ width }} />
    </span>
  );
}
