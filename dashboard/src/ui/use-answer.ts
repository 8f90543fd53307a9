import { useEffect, useState } from 'preact/hooks';
import { complain } from './toasts.tsx';

/**
 * Asks when the page opens, and whenever one of `inputs` changes or `again` is called. What was answered
 * before stays until the new answer is there, so that nothing jumps. Null: no answer yet.
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
