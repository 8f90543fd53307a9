import type { CutReason } from '../../core/words/outcome.ts';
import type { Admission } from './admission.ts';

export function reportCut(admission: Admission, status: number, reason: CutReason | null): void {
  if (reason !== null && reason !== 'left') admission.reportAnswer(status, { cut: reason });
}
