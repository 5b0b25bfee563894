// Swizzle members of each vector size, as macros over M(name, indices...): every read, duplicates included. Of colors those
// without duplicates: the front end writes `xxx` for `rrr`, since each member makes every vector slower to compile.
#pragma once
#define PM_SWIZZLES_2(M) \
  M(xx, 0, 0) M(xy, 0, 1) M(yx, 1, 0) M(yy, 1, 1) M(xxx, 0, 0, 0) M(xxy, 0, 0, 1) M(xyx, 0, 1, 0) M(xyy, 0, 1, 1) \
  M(yxx, 1, 0, 0) M(yxy, 1, 0, 1) M(yyx, 1, 1, 0) M(yyy, 1, 1, 1) M(xxxx, 0, 0, 0, 0) M(xxxy, 0, 0, 0, 1) \
  M(xxyx, 0, 0, 1, 0) M(xxyy, 0, 0, 1, 1) M(xyxx, 0, 1, 0, 0) M(xyxy, 0, 1, 0, 1) M(xyyx, 0, 1, 1, 0) \
  M(xyyy, 0, 1, 1, 1) M(yxxx, 1, 0, 0, 0) M(yxxy, 1, 0, 0, 1) M(yxyx, 1, 0, 1, 0) M(yxyy, 1, 0, 1, 1) \
  M(yyxx, 1, 1, 0, 0) M(yyxy, 1, 1, 0, 1) M(yyyx, 1, 1, 1, 0) M(yyyy, 1, 1, 1, 1) M(rg, 0, 1) M(gr, 1, 0)
#define PM_SWIZZLES_3(M) \
  M(xx, 0, 0) M(xy, 0, 1) M(xz, 0, 2) M(yx, 1, 0) M(yy, 1, 1) M(yz, 1, 2) M(zx, 2, 0) M(zy, 2, 1) M(zz, 2, 2) \
  M(xxx, 0, 0, 0) M(xxy, 0, 0, 1) M(xxz, 0, 0, 2) M(xyx, 0, 1, 0) M(xyy, 0, 1, 1) M(xyz, 0, 1, 2) M(xzx, 0, 2, 0) \
  M(xzy, 0, 2, 1) M(xzz, 0, 2, 2) M(yxx, 1, 0, 0) M(yxy, 1, 0, 1) M(yxz, 1, 0, 2) M(yyx, 1, 1, 0) M(yyy, 1, 1, 1) \
  M(yyz, 1, 1, 2) M(yzx, 1, 2, 0) M(yzy, 1, 2, 1) M(yzz, 1, 2, 2) M(zxx, 2, 0, 0) M(zxy, 2, 0, 1) M(zxz, 2, 0, 2) \
  M(zyx, 2, 1, 0) M(zyy, 2, 1, 1) M(zyz, 2, 1, 2) M(zzx, 2, 2, 0) M(zzy, 2, 2, 1) M(zzz, 2, 2, 2) \
  M(xxxx, 0, 0, 0, 0) M(xxxy, 0, 0, 0, 1) M(xxxz, 0, 0, 0, 2) M(xxyx, 0, 0, 1, 0) M(xxyy, 0, 0, 1, 1) \
  M(xxyz, 0, 0, 1, 2) M(xxzx, 0, 0, 2, 0) M(xxzy, 0, 0, 2, 1) M(xxzz, 0, 0, 2, 2) M(xyxx, 0, 1, 0, 0) \
  M(xyxy, 0, 1, 0, 1) M(xyxz, 0, 1, 0, 2) M(xyyx, 0, 1, 1, 0) M(xyyy, 0, 1, 1, 1) M(xyyz, 0, 1, 1, 2) \
  M(xyzx, 0, 1, 2, 0) M(xyzy, 0, 1, 2, 1) M(xyzz, 0, 1, 2, 2) M(xzxx, 0, 2, 0, 0) M(xzxy, 0, 2, 0, 1) \
  M(xzxz, 0, 2, 0, 2) M(xzyx, 0, 2, 1, 0) M(xzyy, 0, 2, 1, 1) M(xzyz, 0, 2, 1, 2) M(xzzx, 0, 2, 2, 0) \
  M(xzzy, 0, 2, 2, 1) M(xzzz, 0, 2, 2, 2) M(yxxx, 1, 0, 0, 0) M(yxxy, 1, 0, 0, 1) M(yxxz, 1, 0, 0, 2) \
  M(yxyx, 1, 0, 1, 0) M(yxyy, 1, 0, 1, 1) M(yxyz, 1, 0, 1, 2) M(yxzx, 1, 0, 2, 0) M(yxzy, 1, 0, 2, 1) \
  M(yxzz, 1, 0, 2, 2) M(yyxx, 1, 1, 0, 0) M(yyxy, 1, 1, 0, 1) M(yyxz, 1, 1, 0, 2) M(yyyx, 1, 1, 1, 0) \
  M(yyyy, 1, 1, 1, 1) M(yyyz, 1, 1, 1, 2) M(yyzx, 1, 1, 2, 0) M(yyzy, 1, 1, 2, 1) M(yyzz, 1, 1, 2, 2) \
  M(yzxx, 1, 2, 0, 0) M(yzxy, 1, 2, 0, 1) M(yzxz, 1, 2, 0, 2) M(yzyx, 1, 2, 1, 0) M(yzyy, 1, 2, 1, 1) \
  M(yzyz, 1, 2, 1, 2) M(yzzx, 1, 2, 2, 0) M(yzzy, 1, 2, 2, 1) M(yzzz, 1, 2, 2, 2) M(zxxx, 2, 0, 0, 0) \
  M(zxxy, 2, 0, 0, 1) M(zxxz, 2, 0, 0, 2) M(zxyx, 2, 0, 1, 0) M(zxyy, 2, 0, 1, 1) M(zxyz, 2, 0, 1, 2) \
  M(zxzx, 2, 0, 2, 0) M(zxzy, 2, 0, 2, 1) M(zxzz, 2, 0, 2, 2) M(zyxx, 2, 1, 0, 0) M(zyxy, 2, 1, 0, 1) \
  M(zyxz, 2, 1, 0, 2) M(zyyx, 2, 1, 1, 0) M(zyyy, 2, 1, 1, 1) M(zyyz, 2, 1, 1, 2) M(zyzx, 2, 1, 2, 0) \
  M(zyzy, 2, 1, 2, 1) M(zyzz, 2, 1, 2, 2) M(zzxx, 2, 2, 0, 0) M(zzxy, 2, 2, 0, 1) M(zzxz, 2, 2, 0, 2) \
  M(zzyx, 2, 2, 1, 0) M(zzyy, 2, 2, 1, 1) M(zzyz, 2, 2, 1, 2) M(zzzx, 2, 2, 2, 0) M(zzzy, 2, 2, 2, 1) \
  M(zzzz, 2, 2, 2, 2) M(rg, 0, 1) M(rb, 0, 2) M(gr, 1, 0) M(gb, 1, 2) M(br, 2, 0) M(bg, 2, 1) M(rgb, 0, 1, 2) \
  M(rbg, 0, 2, 1) M(grb, 1, 0, 2) M(gbr, 1, 2, 0) M(brg, 2, 0, 1) M(bgr, 2, 1, 0)
#define PM_SWIZZLES_4(M) \
  M(xx, 0, 0) M(xy, 0, 1) M(xz, 0, 2) M(xw, 0, 3) M(yx, 1, 0) M(yy, 1, 1) M(yz, 1, 2) M(yw, 1, 3) M(zx, 2, 0) \
  M(zy, 2, 1) M(zz, 2, 2) M(zw, 2, 3) M(wx, 3, 0) M(wy, 3, 1) M(wz, 3, 2) M(ww, 3, 3) M(xxx, 0, 0, 0) \
  M(xxy, 0, 0, 1) M(xxz, 0, 0, 2) M(xxw, 0, 0, 3) M(xyx, 0, 1, 0) M(xyy, 0, 1, 1) M(xyz, 0, 1, 2) M(xyw, 0, 1, 3) \
  M(xzx, 0, 2, 0) M(xzy, 0, 2, 1) M(xzz, 0, 2, 2) M(xzw, 0, 2, 3) M(xwx, 0, 3, 0) M(xwy, 0, 3, 1) M(xwz, 0, 3, 2) \
  M(xww, 0, 3, 3) M(yxx, 1, 0, 0) M(yxy, 1, 0, 1) M(yxz, 1, 0, 2) M(yxw, 1, 0, 3) M(yyx, 1, 1, 0) M(yyy, 1, 1, 1) \
  M(yyz, 1, 1, 2) M(yyw, 1, 1, 3) M(yzx, 1, 2, 0) M(yzy, 1, 2, 1) M(yzz, 1, 2, 2) M(yzw, 1, 2, 3) M(ywx, 1, 3, 0) \
  M(ywy, 1, 3, 1) M(ywz, 1, 3, 2) M(yww, 1, 3, 3) M(zxx, 2, 0, 0) M(zxy, 2, 0, 1) M(zxz, 2, 0, 2) M(zxw, 2, 0, 3) \
  M(zyx, 2, 1, 0) M(zyy, 2, 1, 1) M(zyz, 2, 1, 2) M(zyw, 2, 1, 3) M(zzx, 2, 2, 0) M(zzy, 2, 2, 1) M(zzz, 2, 2, 2) \
  M(zzw, 2, 2, 3) M(zwx, 2, 3, 0) M(zwy, 2, 3, 1) M(zwz, 2, 3, 2) M(zww, 2, 3, 3) M(wxx, 3, 0, 0) M(wxy, 3, 0, 1) \
  M(wxz, 3, 0, 2) M(wxw, 3, 0, 3) M(wyx, 3, 1, 0) M(wyy, 3, 1, 1) M(wyz, 3, 1, 2) M(wyw, 3, 1, 3) M(wzx, 3, 2, 0) \
  M(wzy, 3, 2, 1) M(wzz, 3, 2, 2) M(wzw, 3, 2, 3) M(wwx, 3, 3, 0) M(wwy, 3, 3, 1) M(wwz, 3, 3, 2) M(www, 3, 3, 3) \
  M(xxxx, 0, 0, 0, 0) M(xxxy, 0, 0, 0, 1) M(xxxz, 0, 0, 0, 2) M(xxxw, 0, 0, 0, 3) M(xxyx, 0, 0, 1, 0) \
  M(xxyy, 0, 0, 1, 1) M(xxyz, 0, 0, 1, 2) M(xxyw, 0, 0, 1, 3) M(xxzx, 0, 0, 2, 0) M(xxzy, 0, 0, 2, 1) \
  M(xxzz, 0, 0, 2, 2) M(xxzw, 0, 0, 2, 3) M(xxwx, 0, 0, 3, 0) M(xxwy, 0, 0, 3, 1) M(xxwz, 0, 0, 3, 2) \
  M(xxww, 0, 0, 3, 3) M(xyxx, 0, 1, 0, 0) M(xyxy, 0, 1, 0, 1) M(xyxz, 0, 1, 0, 2) M(xyxw, 0, 1, 0, 3) \
  M(xyyx, 0, 1, 1, 0) M(xyyy, 0, 1, 1, 1) M(xyyz, 0, 1, 1, 2) M(xyyw, 0, 1, 1, 3) M(xyzx, 0, 1, 2, 0) \
  M(xyzy, 0, 1, 2, 1) M(xyzz, 0, 1, 2, 2) M(xyzw, 0, 1, 2, 3) M(xywx, 0, 1, 3, 0) M(xywy, 0, 1, 3, 1) \
  M(xywz, 0, 1, 3, 2) M(xyww, 0, 1, 3, 3) M(xzxx, 0, 2, 0, 0) M(xzxy, 0, 2, 0, 1) M(xzxz, 0, 2, 0, 2) \
  M(xzxw, 0, 2, 0, 3) M(xzyx, 0, 2, 1, 0) M(xzyy, 0, 2, 1, 1) M(xzyz, 0, 2, 1, 2) M(xzyw, 0, 2, 1, 3) \
  M(xzzx, 0, 2, 2, 0) M(xzzy, 0, 2, 2, 1) M(xzzz, 0, 2, 2, 2) M(xzzw, 0, 2, 2, 3) M(xzwx, 0, 2, 3, 0) \
  M(xzwy, 0, 2, 3, 1) M(xzwz, 0, 2, 3, 2) M(xzww, 0, 2, 3, 3) M(xwxx, 0, 3, 0, 0) M(xwxy, 0, 3, 0, 1) \
  M(xwxz, 0, 3, 0, 2) M(xwxw, 0, 3, 0, 3) M(xwyx, 0, 3, 1, 0) M(xwyy, 0, 3, 1, 1) M(xwyz, 0, 3, 1, 2) \
  M(xwyw, 0, 3, 1, 3) M(xwzx, 0, 3, 2, 0) M(xwzy, 0, 3, 2, 1) M(xwzz, 0, 3, 2, 2) M(xwzw, 0, 3, 2, 3) \
  M(xwwx, 0, 3, 3, 0) M(xwwy, 0, 3, 3, 1) M(xwwz, 0, 3, 3, 2) M(xwww, 0, 3, 3, 3) M(yxxx, 1, 0, 0, 0) \
  M(yxxy, 1, 0, 0, 1) M(yxxz, 1, 0, 0, 2) M(yxxw, 1, 0, 0, 3) M(yxyx, 1, 0, 1, 0) M(yxyy, 1, 0, 1, 1) \
  M(yxyz, 1, 0, 1, 2) M(yxyw, 1, 0, 1, 3) M(yxzx, 1, 0, 2, 0) M(yxzy, 1, 0, 2, 1) M(yxzz, 1, 0, 2, 2) \
  M(yxzw, 1, 0, 2, 3) M(yxwx, 1, 0, 3, 0) M(yxwy, 1, 0, 3, 1) M(yxwz, 1, 0, 3, 2) M(yxww, 1, 0, 3, 3) \
  M(yyxx, 1, 1, 0, 0) M(yyxy, 1, 1, 0, 1) M(yyxz, 1, 1, 0, 2) M(yyxw, 1, 1, 0, 3) M(yyyx, 1, 1, 1, 0) \
  M(yyyy, 1, 1, 1, 1) M(yyyz, 1, 1, 1, 2) M(yyyw, 1, 1, 1, 3) M(yyzx, 1, 1, 2, 0) M(yyzy, 1, 1, 2, 1) \
  M(yyzz, 1, 1, 2, 2) M(yyzw, 1, 1, 2, 3) M(yywx, 1, 1, 3, 0) M(yywy, 1, 1, 3, 1) M(yywz, 1, 1, 3, 2) \
  M(yyww, 1, 1, 3, 3) M(yzxx, 1, 2, 0, 0) M(yzxy, 1, 2, 0, 1) M(yzxz, 1, 2, 0, 2) M(yzxw, 1, 2, 0, 3) \
  M(yzyx, 1, 2, 1, 0) M(yzyy, 1, 2, 1, 1) M(yzyz, 1, 2, 1, 2) M(yzyw, 1, 2, 1, 3) M(yzzx, 1, 2, 2, 0) \
  M(yzzy, 1, 2, 2, 1) M(yzzz, 1, 2, 2, 2) M(yzzw, 1, 2, 2, 3) M(yzwx, 1, 2, 3, 0) M(yzwy, 1, 2, 3, 1) \
  M(yzwz, 1, 2, 3, 2) M(yzww, 1, 2, 3, 3) M(ywxx, 1, 3, 0, 0) M(ywxy, 1, 3, 0, 1) M(ywxz, 1, 3, 0, 2) \
  M(ywxw, 1, 3, 0, 3) M(ywyx, 1, 3, 1, 0) M(ywyy, 1, 3, 1, 1) M(ywyz, 1, 3, 1, 2) M(ywyw, 1, 3, 1, 3) \
  M(ywzx, 1, 3, 2, 0) M(ywzy, 1, 3, 2, 1) M(ywzz, 1, 3, 2, 2) M(ywzw, 1, 3, 2, 3) M(ywwx, 1, 3, 3, 0) \
  M(ywwy, 1, 3, 3, 1) M(ywwz, 1, 3, 3, 2) M(ywww, 1, 3, 3, 3) M(zxxx, 2, 0, 0, 0) M(zxxy, 2, 0, 0, 1) \
  M(zxxz, 2, 0, 0, 2) M(zxxw, 2, 0, 0, 3) M(zxyx, 2, 0, 1, 0) M(zxyy, 2, 0, 1, 1) M(zxyz, 2, 0, 1, 2) \
  M(zxyw, 2, 0, 1, 3) M(zxzx, 2, 0, 2, 0) M(zxzy, 2, 0, 2, 1) M(zxzz, 2, 0, 2, 2) M(zxzw, 2, 0, 2, 3) \
  M(zxwx, 2, 0, 3, 0) M(zxwy, 2, 0, 3, 1) M(zxwz, 2, 0, 3, 2) M(zxww, 2, 0, 3, 3) M(zyxx, 2, 1, 0, 0) \
  M(zyxy, 2, 1, 0, 1) M(zyxz, 2, 1, 0, 2) M(zyxw, 2, 1, 0, 3) M(zyyx, 2, 1, 1, 0) M(zyyy, 2, 1, 1, 1) \
  M(zyyz, 2, 1, 1, 2) M(zyyw, 2, 1, 1, 3) M(zyzx, 2, 1, 2, 0) M(zyzy, 2, 1, 2, 1) M(zyzz, 2, 1, 2, 2) \
  M(zyzw, 2, 1, 2, 3) M(zywx, 2, 1, 3, 0) M(zywy, 2, 1, 3, 1) M(zywz, 2, 1, 3, 2) M(zyww, 2, 1, 3, 3) \
  M(zzxx, 2, 2, 0, 0) M(zzxy, 2, 2, 0, 1) M(zzxz, 2, 2, 0, 2) M(zzxw, 2, 2, 0, 3) M(zzyx, 2, 2, 1, 0) \
  M(zzyy, 2, 2, 1, 1) M(zzyz, 2, 2, 1, 2) M(zzyw, 2, 2, 1, 3) M(zzzx, 2, 2, 2, 0) M(zzzy, 2, 2, 2, 1) \
  M(zzzz, 2, 2, 2, 2) M(zzzw, 2, 2, 2, 3) M(zzwx, 2, 2, 3, 0) M(zzwy, 2, 2, 3, 1) M(zzwz, 2, 2, 3, 2) \
  M(zzww, 2, 2, 3, 3) M(zwxx, 2, 3, 0, 0) M(zwxy, 2, 3, 0, 1) M(zwxz, 2, 3, 0, 2) M(zwxw, 2, 3, 0, 3) \
  M(zwyx, 2, 3, 1, 0) M(zwyy, 2, 3, 1, 1) M(zwyz, 2, 3, 1, 2) M(zwyw, 2, 3, 1, 3) M(zwzx, 2, 3, 2, 0) \
  M(zwzy, 2, 3, 2, 1) M(zwzz, 2, 3, 2, 2) M(zwzw, 2, 3, 2, 3) M(zwwx, 2, 3, 3, 0) M(zwwy, 2, 3, 3, 1) \
  M(zwwz, 2, 3, 3, 2) M(zwww, 2, 3, 3, 3) M(wxxx, 3, 0, 0, 0) M(wxxy, 3, 0, 0, 1) M(wxxz, 3, 0, 0, 2) \
  M(wxxw, 3, 0, 0, 3) M(wxyx, 3, 0, 1, 0) M(wxyy, 3, 0, 1, 1) M(wxyz, 3, 0, 1, 2) M(wxyw, 3, 0, 1, 3) \
  M(wxzx, 3, 0, 2, 0) M(wxzy, 3, 0, 2, 1) M(wxzz, 3, 0, 2, 2) M(wxzw, 3, 0, 2, 3) M(wxwx, 3, 0, 3, 0) \
  M(wxwy, 3, 0, 3, 1) M(wxwz, 3, 0, 3, 2) M(wxww, 3, 0, 3, 3) M(wyxx, 3, 1, 0, 0) M(wyxy, 3, 1, 0, 1) \
  M(wyxz, 3, 1, 0, 2) M(wyxw, 3, 1, 0, 3) M(wyyx, 3, 1, 1, 0) M(wyyy, 3, 1, 1, 1) M(wyyz, 3, 1, 1, 2) \
  M(wyyw, 3, 1, 1, 3) M(wyzx, 3, 1, 2, 0) M(wyzy, 3, 1, 2, 1) M(wyzz, 3, 1, 2, 2) M(wyzw, 3, 1, 2, 3) \
  M(wywx, 3, 1, 3, 0) M(wywy, 3, 1, 3, 1) M(wywz, 3, 1, 3, 2) M(wyww, 3, 1, 3, 3) M(wzxx, 3, 2, 0, 0) \
  M(wzxy, 3, 2, 0, 1) M(wzxz, 3, 2, 0, 2) M(wzxw, 3, 2, 0, 3) M(wzyx, 3, 2, 1, 0) M(wzyy, 3, 2, 1, 1) \
  M(wzyz, 3, 2, 1, 2) M(wzyw, 3, 2, 1, 3) M(wzzx, 3, 2, 2, 0) M(wzzy, 3, 2, 2, 1) M(wzzz, 3, 2, 2, 2) \
  M(wzzw, 3, 2, 2, 3) M(wzwx, 3, 2, 3, 0) M(wzwy, 3, 2, 3, 1) M(wzwz, 3, 2, 3, 2) M(wzww, 3, 2, 3, 3) \
  M(wwxx, 3, 3, 0, 0) M(wwxy, 3, 3, 0, 1) M(wwxz, 3, 3, 0, 2) M(wwxw, 3, 3, 0, 3) M(wwyx, 3, 3, 1, 0) \
  M(wwyy, 3, 3, 1, 1) M(wwyz, 3, 3, 1, 2) M(wwyw, 3, 3, 1, 3) M(wwzx, 3, 3, 2, 0) M(wwzy, 3, 3, 2, 1) \
  M(wwzz, 3, 3, 2, 2) M(wwzw, 3, 3, 2, 3) M(wwwx, 3, 3, 3, 0) M(wwwy, 3, 3, 3, 1) M(wwwz, 3, 3, 3, 2) \
  M(wwww, 3, 3, 3, 3) M(rg, 0, 1) M(rb, 0, 2) M(ra, 0, 3) M(gr, 1, 0) M(gb, 1, 2) M(ga, 1, 3) M(br, 2, 0) \
  M(bg, 2, 1) M(ba, 2, 3) M(ar, 3, 0) M(ag, 3, 1) M(ab, 3, 2) M(rgb, 0, 1, 2) M(rga, 0, 1, 3) M(rbg, 0, 2, 1) \
  M(rba, 0, 2, 3) M(rag, 0, 3, 1) M(rab, 0, 3, 2) M(grb, 1, 0, 2) M(gra, 1, 0, 3) M(gbr, 1, 2, 0) M(gba, 1, 2, 3) \
  M(gar, 1, 3, 0) M(gab, 1, 3, 2) M(brg, 2, 0, 1) M(bra, 2, 0, 3) M(bgr, 2, 1, 0) M(bga, 2, 1, 3) M(bar, 2, 3, 0) \
  M(bag, 2, 3, 1) M(arg, 3, 0, 1) M(arb, 3, 0, 2) M(agr, 3, 1, 0) M(agb, 3, 1, 2) M(abr, 3, 2, 0) M(abg, 3, 2, 1) \
  M(rgba, 0, 1, 2, 3) M(rgab, 0, 1, 3, 2) M(rbga, 0, 2, 1, 3) M(rbag, 0, 2, 3, 1) M(ragb, 0, 3, 1, 2) \
  M(rabg, 0, 3, 2, 1) M(grba, 1, 0, 2, 3) M(grab, 1, 0, 3, 2) M(gbra, 1, 2, 0, 3) M(gbar, 1, 2, 3, 0) \
  M(garb, 1, 3, 0, 2) M(gabr, 1, 3, 2, 0) M(brga, 2, 0, 1, 3) M(brag, 2, 0, 3, 1) M(bgra, 2, 1, 0, 3) \
  M(bgar, 2, 1, 3, 0) M(barg, 2, 3, 0, 1) M(bagr, 2, 3, 1, 0) M(argb, 3, 0, 1, 2) M(arbg, 3, 0, 2, 1) \
  M(agrb, 3, 1, 0, 2) M(agbr, 3, 1, 2, 0) M(abrg, 3, 2, 0, 1) M(abgr, 3, 2, 1, 0)
