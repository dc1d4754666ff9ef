import * as vscode from 'vscode';
import {
  WorkDoneProgressCancelNotification, type LanguageClient, type Middleware, type WorkDoneProgressReport,
} from 'vscode-languageclient/node';

type Handle = NonNullable<Middleware['handleWorkDoneProgress']>;

interface Shown {
  progress: vscode.Progress<{ message?: string; increment?: number }>;
  percentage: number;
  end: () => void;
}

/** A job that the user started is a notification with a Cancel button: the client's own is out of sight. */
export function handleWorkDoneProgress(client: () => LanguageClient | undefined): Handle {
  const shown = new Map<string | number, Shown>();

  const report = (token: string | number, { message, percentage }: Omit<WorkDoneProgressReport, 'kind'>): void => {
    const one = shown.get(token);
    if (!one) return;
    const increment = Math.max(0, (percentage ?? 0) - one.percentage);
    one.percentage += increment;
    one.progress.report(percentage === undefined ? { message } : { message, increment });
  };

  return (token, params, next) => {
    if (params.kind === 'begin') {
      const { title } = params;
      void vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, cancellable: true, title: `cuda-lsp: ${title}` },
        (progress, cancelled) => new Promise<void>((end) => {
          shown.set(token, { progress, percentage: 0, end });
          cancelled.onCancellationRequested(() =>
            void client()?.sendNotification(WorkDoneProgressCancelNotification.type, { token }));
          report(token, params);
        }));
    } else if (params.kind === 'report') {
      report(token, params);
    } else {
      shown.get(token)?.end();
      shown.delete(token);
      next(token, params);
    }
  };
}
