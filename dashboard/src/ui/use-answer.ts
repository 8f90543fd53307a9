import { useEffect, useState } from 'preact/hooks';
import { complain } from './toasts.tsx';

/**
 * Runs a request when the page opens, when one of `inputs` changes, and when `again` is called. The previous answer
 * stays until the new one arrives, so that the layout does not jump. null before the first answer.
 */
export function useAnswer<Answer>(
  ask: () => Promise<Answer>,
  inputs: readonly unknown[],
): readonly [Answer | null, () => void] {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    ask().then(
      (answered) => {
        if (isCurrent) setAnswer(() => answered);
      },
      (error: unknown) => complain(String(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [...inputs, round]);
  return [answer, () => setRound((before) => before + 1)];
}
