/** As much of pdfkit as invoices need; it comes without types. */
declare module 'pdfkit' {
  type TextOptions = {
    width?: number;
    align?: 'left' | 'right';
    lineBreak?: boolean;
    lineGap?: number;
    height?: number;
    ellipsis?: boolean;
  };
  export default class PDFDocument {
    constructor(options: {
      size: 'A4';
      margins: { top: number; bottom: number; left: number; right: number };
      bufferPages: boolean;
      autoFirstPage: boolean;
      lang: string;
      displayTitle: boolean;
      font: string;
      info: Record<string, string | Date>;
    });
    y: number;
    registerFont(name: string, font: Buffer): this;
    font(name: string): this;
    fontSize(size: number): this;
    fillColor(color: string): this;
    strokeColor(color: string): this;
    lineWidth(width: number): this;
    moveTo(x: number, y: number): this;
    lineTo(x: number, y: number): this;
    stroke(): this;
    rect(x: number, y: number, width: number, height: number): this;
    fill(color: string): this;
    text(text: string, x: number, y: number, options?: TextOptions): this;
    heightOfString(text: string, options?: TextOptions): number;
    addPage(): this;
    switchToPage(index: number): this;
    bufferedPageRange(): { start: number; count: number };
    on(event: 'data', listener: (chunk: Buffer) => void): this;
    on(event: 'end', listener: () => void): this;
    on(event: 'error', listener: (error: Error) => void): this;
    end(): void;
  }
}
